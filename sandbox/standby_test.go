package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestStandby: the first run waits for its container, and a later one doesn't, whose container is another.
func TestStandby(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		first := call(t, s, "10ms")
		if first.Took.Start != fl.startTime {
			t.Errorf("the first guest was ready after %v, want %v", first.Took.Start, fl.startTime)
		}
		seen := map[string]bool{first.Stdout(): true}
		for range 20 {
			time.Sleep(300 * time.Millisecond)
			r := call(t, s, "10ms")
			if r.Took.Start != 0 || r.Took.Total != 10*time.Millisecond {
				t.Errorf("took %+v, want no time but the code's own", r.Took)
			}
			if seen[r.Stdout()] {
				t.Errorf("container %s ran twice", r.Stdout())
			}
			seen[r.Stdout()] = true
		}
		synctest.Wait()
		time.Sleep(time.Second)
		if alive, idle := fl.count(); alive != 1 || idle != 1 {
			t.Errorf("%d containers are alive and %d wait, want 1, 1", alive, idle)
		}
	})
}

// TestNoStandby: with 0 there is none.
func TestNoStandby(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 0 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Minute)
		if alive, _ := fl.count(); alive != 0 || fl.started() != 1 {
			t.Errorf("%d alive after %d starts, want none after 1", alive, fl.started())
		}
	})
}

// TestStandbyIdle: an idle bridge holds no container, and the next run begins anew.
func TestStandbyIdle(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		for range 2 {
			call(t, s, "1ms")
			time.Sleep(4 * time.Minute)
			if alive, idle := fl.count(); alive != 1 || idle != 1 {
				t.Errorf("after four minutes %d are alive and %d wait, want 1, 1", alive, idle)
			}
			time.Sleep(2 * time.Minute)
			if alive, _ := fl.count(); alive != 0 {
				t.Errorf("after six minutes %d are alive, want none", alive)
			}
		}
	})
}

// TestStandbyFollowsDemand: where calls come faster than containers start, as many are begun ahead that none waits, and one waits when
// they are few again.
func TestStandbyFollowsDemand(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 4 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		waited := 0
		for i := range 400 {
			if call(t, s, "1ms").Took.Start > 0 && i > 20 {
				waited++
			}
			time.Sleep(fl.startTime * 2 / 3)
		}
		if waited > 0 {
			t.Errorf("%d of the later calls waited, want none", waited)
		}
		time.Sleep(demandIsOver)
		if _, idle := fl.count(); idle != 1 {
			t.Errorf("%d wait after the rush, want 1", idle)
		}
	})
}

const demandIsOver = 70 * time.Second

// TestStandbyAge: none waits so long that its engine would end it in its run.
func TestStandbyAge(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.StandbyIdle = time.Hour }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(35 * time.Minute)
		if _, idle := fl.count(); idle != 1 || fl.started() != 1+4 {
			t.Errorf("%d wait after %d starts, want 1 after 5", idle, fl.started())
		}
	})
}

// TestStandbyChecked: one that doesn't answer, or has died, isn't lent, and the run has another.
func TestStandbyChecked(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		fl.set(func() { fl.deaf = true })
		if r := call(t, s, "1ms"); r.Took.Start < time.Second || r.Took.Start > 2*time.Second {
			t.Errorf("got a guest after %v, want one after the deaf one was given up", r.Took.Start)
		}
		fl.set(func() { fl.deaf = false })
		time.Sleep(10 * time.Second)
		fl.set(func() {
			for _, kill := range fl.alive {
				kill()
			}
		})
		time.Sleep(time.Second)
		call(t, s, "1ms")
	})
}

// TestStandbyIsStale: after the engine was looked at anew and has another image, no run gets the old one.
func TestStandbyIsStale(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		fl.set(func() {
			fl.image = "second"
			fl.broken = func() error { return errors.New("out of order") }
		})
		// Two runs at once: one takes the standby, the other finds the engine out of order, so that it is looked at anew.
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				_, _ = s.Run(t.Context(), sandbox.Request{Code: "1ms", Timeout: time.Minute}, hostFunc(echo))
			})
		}
		wg.Wait()
		fl.set(func() { fl.broken = nil })
		for range 3 {
			if r := call(t, s, "1ms"); !strings.HasSuffix(r.Stdout(), "second") {
				t.Errorf("ran in %q", r.Stdout())
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// TestCancelledByADeafStandby: a caller that gives up waits neither for an answer nor for an engine that takes its time to kill.
func TestCancelledByADeafStandby(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 4 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		for range 100 {
			call(t, s, "1ms")
			time.Sleep(50 * time.Millisecond)
		}
		fl.set(func() { fl.deaf, fl.removal = true, 20*time.Second })
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		begin := time.Now()
		r, err := s.Run(ctx, sandbox.Request{Code: "1ms", Timeout: time.Minute}, hostFunc(echo))
		if took := time.Since(begin); err != nil || r.Status != sandbox.StatusCancelled || took > 300*time.Millisecond {
			t.Errorf("got %+v, %v after %v", r, err, took)
		}
	})
}

// TestNextReady: a run that finds as many containers as may be has the next that is ready, whoever it was started for.
func TestNextReady(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.MaxContainers = 2 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		fl.set(func() { fl.removal = time.Minute })
		call(t, s, "1ms") // its container is on its way to its end for a minute
		time.Sleep(50 * time.Millisecond)
		if r := call(t, s, "1ms"); r.Took.Total > fl.startTime {
			t.Errorf("took %v, want at most what a start takes", r.Took.Total)
		}
	})
}

// TestManyRunsAtOnce: however often the keeper is woken, it gets to start containers.
func TestManyRunsAtOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		var runs sync.WaitGroup
		var mu sync.Mutex
		quick := 0
		for range 600 {
			runs.Go(func() {
				if call(t, s, "1ms").Took.Start < fl.startTime {
					mu.Lock()
					defer mu.Unlock()
					quick++
				}
			})
			time.Sleep(15 * time.Millisecond)
		}
		runs.Wait()
		if quick < 30 { // one in 170 ms, at best 53
			t.Errorf("%d runs of 600 waited for less than a start, want 30 at least", quick)
		}
	})
}

// TestLookedAtAnewOnce: runs that are cancelled while their containers start say nothing of the engine.
func TestLookedAtAnewOnce(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 0 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		fl.set(func() { fl.image = "second" }) // seen by whoever looks anew
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if r, err := s.Run(ctx, sandbox.Request{Code: "1ms", Timeout: time.Minute}, hostFunc(echo)); err != nil || r.Status != sandbox.StatusCancelled {
				t.Errorf("got %+v, %v", r, err)
			}
			cancel()
		}
		time.Sleep(time.Second)
		if r := call(t, s, "1ms"); !strings.HasSuffix(r.Stdout(), " first") {
			t.Errorf("ran in %q: the engine was looked at anew", r.Stdout())
		}
	})
}

// TestNoStartStorm: an engine that can start nothing is asked ever more rarely.
func TestNoStartStorm(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby, c.StandbyIdle = 8, time.Hour }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Minute)
		fl.set(func() {
			fl.broken = func() error { return errors.New("out of order") }
			for _, kill := range fl.alive {
				kill()
			}
		})
		before := fl.started()
		for range 60 { // the engine answers, so that a look at it is no help
			if err := s.Prepare(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		if n := fl.started() - before; n == 0 || n > 20 {
			t.Errorf("%d starts were tried in ten minutes, want some, and at most 20", n)
		}
	})
}

// TestDiesAtOnce: guests that die while they wait are replaced, and not in a storm.
func TestDiesAtOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		end := time.Now().Add(time.Minute)
		for time.Now().Before(end) {
			fl.set(func() {
				for id := range fl.idle {
					fl.alive[id]()
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		if fl.started() < 3 || fl.started() > 15 {
			t.Errorf("%d starts in a minute, want some, and ever fewer", fl.started())
		}
	})
}
