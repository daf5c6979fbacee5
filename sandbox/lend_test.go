package sandbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestNextCallTakesWhatIsBegun: a call that comes before the next container is ready waits for what is left of its start, and has
// the following one begun.
func TestNextCallTakesWhatIsBegun(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		before := fl.started()
		call(t, s, "100ms")
		if r := call(t, s, "1ms"); r.Took.Start >= 100*time.Millisecond || r.Took.Start < 50*time.Millisecond {
			t.Errorf("the container was ready after %v, want the rest of %v", r.Took.Start, fl.startTime)
		}
		if r := call(t, s, "1ms"); r.Took.Start >= fl.startTime {
			t.Errorf("the container of the third call was ready after %v, want the rest of %v", r.Took.Start, fl.startTime)
		}
		time.Sleep(time.Second)
		if _, idle := fl.count(); idle != 1 || fl.started()-before != 3 {
			t.Errorf("%d wait after %d starts, want 1 after 3: no call had one of its own", idle, fl.started()-before)
		}
	})
}

// TestStandbysForABurst: after calls that came together, as many containers wait for the next such, while those may come.
func TestStandbysForABurst(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 8 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		burst := func() (waited int) {
			var all sync.WaitGroup
			var mu sync.Mutex
			for range 5 {
				all.Go(func() {
					if call(t, s, "1s").Took.Start > 0 {
						mu.Lock()
						defer mu.Unlock()
						waited++
					}
				})
			}
			all.Wait()
			return waited
		}
		time.Sleep(10 * time.Second)
		if n := burst(); n != 4 {
			t.Errorf("%d of the first five calls waited, want 4: one container was there", n)
		}
		for range 3 {
			time.Sleep(30 * time.Second)
			if n := burst(); n != 0 {
				t.Errorf("%d of five calls waited, though as many had come before", n)
			}
		}
		time.Sleep(2 * time.Minute)
		if _, idle := fl.count(); idle != 1 {
			t.Errorf("%d wait when no more calls come, want 1", idle)
		}
	})
}

// TestBegunAndKilled: a call that waits for a container that turns out not to start has one of its own at once.
func TestBegunAndKilled(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		call(t, s, "50ms")                           // the next one is begun meanwhile,
		time.AfterFunc(40*time.Millisecond, func() { // and the one after that by now: nothing is left to wait for
			fl.set(func() {
				for id, kill := range fl.alive {
					if !fl.ran[id] {
						kill()
					}
				}
			})
		})
		if r := call(t, s, "1ms"); r.Took.Start > 500*time.Millisecond {
			t.Errorf("it had a container after %v, want what a failure and a start take", r.Took.Start)
		}
	})
}

// TestBegunAndLate: a call doesn't wait for ever for a container that takes much longer to start than others did.
func TestBegunAndLate(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		fl.set(func() { fl.startTime = 20 * time.Second })
		call(t, s, "50ms")
		time.AfterFunc(500*time.Millisecond, func() { fl.set(func() { fl.startTime = 150 * time.Millisecond }) })
		if r := call(t, s, "1ms"); r.Took.Start > 2*time.Second {
			t.Errorf("it had a container after %v, want a second and a start", r.Took.Start)
		}
	})
}

// TestCancelledWhileBegun: a call that is cancelled while it waits for a container that is being started leaves it to the next.
func TestCancelledWhileBegun(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		call(t, s, "50ms")
		before := fl.started()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		r, err := s.Run(ctx, sandbox.Request{Code: "1ms", Timeout: time.Minute}, hostFunc(echo))
		if err != nil || r.Status != sandbox.StatusCancelled || r.ExitCode != -1 || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("got %+v, %v", r, err)
		}
		time.Sleep(time.Second)
		if r := call(t, s, "1ms"); r.Took.Start != 0 {
			t.Errorf("the next call waited %v, though a container was begun", r.Took.Start)
		}
		time.Sleep(time.Second)
		if n := fl.started() - before; n > 2 {
			t.Errorf("%d starts, want 2 at most: one for the cancelled call's line and one for the last call", n)
		}
	})
}

// TestEngineIsNotAsked: a run that finds a container waiting asks the engine nothing; and what the driver learns of its engine as it
// starts a container counts for that one and for all after it.
func TestEngineIsNotAsked(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		fl.set(func() { fl.facts.OwnUsers = true })
		call(t, s, "1ms")
		fl.set(func() { fl.facts.OwnUsers = false })
		for range 3 {
			time.Sleep(time.Second)
			before := fl.looked()
			if r := call(t, s, "1ms"); r.Took.Start != 0 || fl.looked() != before {
				t.Errorf("it had its container after %v, and the engine was asked %d times", r.Took.Start, fl.looked()-before)
			}
		}
	})
}

// TestWaitForRoomIsToldApart: containers that an engine takes its time to remove count among those that may be. What a run waits for that is
// no part of its start.
func TestWaitForRoomIsToldApart(t *testing.T) {
	only := func(standby int) func(*sandbox.Config) {
		return func(c *sandbox.Config) { c.MaxContainers, c.Standby = standby+1, standby }
	}
	t.Run("one of its own", func(t *testing.T) {
		bubble(t, only(0), func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			fl.set(func() { fl.removal = 25 * time.Second })
			for _, room := range []time.Duration{0, 25 * time.Second} {
				r := call(t, s, "1ms")
				want := sandbox.Took{Room: room, Start: fl.startTime, Run: time.Millisecond, Total: room + fl.startTime + time.Millisecond}
				if r.Took != want {
					t.Errorf("got %+v, want %+v", r.Took, want)
				}
			}
		})
	})
	t.Run("one that was begun", func(t *testing.T) {
		bubble(t, only(1), func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			call(t, s, "1ms")
			time.Sleep(time.Second)
			fl.set(func() { fl.removal, fl.answers = 25*time.Second, 10*time.Millisecond })
			var all sync.WaitGroup
			for range 2 { // both containers
				all.Go(func() { call(t, s, "1ms") })
			}
			all.Wait()
			r := call(t, s, "1ms")
			if r.Took.Room < 24*time.Second || r.Took.Start < 0 || r.Took.Start > time.Second || r.Took.Room+r.Took.Start+r.Took.Run != r.Took.Total {
				t.Errorf("got %+v, want most of %v for room, and little for the start", r.Took, fl.removal)
			}
		})
	})
}
