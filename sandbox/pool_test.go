package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestStandby: the first run waits for its container, and a later one doesn't, whose container is
// another.
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

// TestNoStandby: with 0 there isn't one.
func TestNoStandby(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 0 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Minute)
		if alive, _ := fl.count(); alive != 0 || fl.started() != 1 {
			t.Errorf("%d alive after %d starts, want none after 1", alive, fl.started())
		}
	})
}

// TestStandbyIdle: an idle bridge holds no container, and the next run starts over.
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

// TestStandbyAge: none waits so long that its engine would end it in its run.
func TestStandbyAge(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.StandbyIdle = time.Hour },
		func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
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

// TestStandbyIsStale: after the engine was looked at again and has another image, no run gets the
// old one.
func TestStandbyIsStale(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		fl.set(func() {
			fl.image = "second"
			fl.broken = func() error { return errors.New("out of order") }
		})
		// Two runs at once: one takes the standby, the other finds the engine out of order, so that
		// it is looked at again.
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

// TestCancelledByADeafStandby: a caller that gives up waits neither for an answer nor for an engine
// that takes its time to kill.
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
		if took := time.Since(begin); err != nil || r.Status != sandbox.StatusCancelled ||
			took > 300*time.Millisecond {
			t.Errorf("got %+v, %v after %v", r, err, took)
		}
	})
}

// TestNextReady: a run that finds as many containers as may be has the next that is ready, whatever
// it was started for.
func TestNextReady(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.MaxContainers = 2 },
		func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			fl.set(func() { fl.removal = time.Minute })
			call(t, s, "1ms") // its container is on its way to its end for a minute
			time.Sleep(50 * time.Millisecond)
			if r := call(t, s, "1ms"); r.Took.Total > fl.startTime {
				t.Errorf("took %v, want at most what a start takes", r.Took.Total)
			}
		})
}

// TestLookedAtAgainOnce: runs that are cancelled while their containers start say nothing of the
// engine.
func TestLookedAtAgainOnce(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 0 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		fl.set(func() { fl.image = "second" }) // seen by the next look
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if r, err := s.Run(ctx, sandbox.Request{Code: "1ms", Timeout: time.Minute}, hostFunc(echo)); err != nil ||
				r.Status != sandbox.StatusCancelled {
				t.Errorf("got %+v, %v", r, err)
			}
			cancel()
		}
		time.Sleep(time.Second)
		if r := call(t, s, "1ms"); !strings.HasSuffix(r.Stdout(), " first") {
			t.Errorf("ran in %q: the engine was looked at again", r.Stdout())
		}
	})
}

// TestNoStartStorm: an engine that can start nothing is asked ever more rarely, and the log says
// what it answers.
func TestNoStartStorm(t *testing.T) {
	var said bytes.Buffer
	change := func(c *sandbox.Config) {
		c.Standby, c.StandbyIdle, c.Log = 8, time.Hour, slog.New(slog.NewTextHandler(&said, nil))
	}
	bubble(t, change, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
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
			if err := look(s, t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		if n := fl.started() - before; n == 0 || n > 20 {
			t.Errorf("%d starts were tried in ten minutes, want some, and at most 20", n)
		}
	})
	if !strings.Contains(said.String(), `cause="out of order"`) {
		t.Errorf("the log says %.500s", said.String())
	}
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

// TestEngineIsNotAsked: a run that finds a container waiting asks the engine nothing; and what the
// driver learns of its engine as it starts a container counts for that one and for all after it.
func TestEngineIsNotAsked(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		fl.set(func() { fl.facts.OwnUsers = true })
		call(t, s, "1ms")
		fl.set(func() { fl.facts.OwnUsers = false })
		for range 3 {
			time.Sleep(time.Second)
			before := fl.looked()
			if r := call(t, s, "1ms"); r.Took.Start != 0 || fl.looked() != before {
				t.Errorf("it had its container after %v, and the engine was asked %d times", r.Took.Start,
					fl.looked()-before)
			}
		}
	})
}

// TestDeafGuestsAreNoStorm: guests that don't answer while they wait are replaced ever more rarely,
// and at once again when one has answered a run.
func TestDeafGuestsAreNoStorm(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.StandbyIdle = time.Hour },
		func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			call(t, s, "1ms")
			fl.set(func() { fl.deaf = true })
			before := fl.started()
			time.Sleep(10 * time.Minute)
			if n := fl.started() - before; n < 3 || n > 20 {
				t.Errorf("%d starts in ten minutes, want some, and ever fewer", n)
			}
			fl.set(func() { fl.deaf = false })
			time.Sleep(2 * time.Minute)
			if r := call(t, s, "1ms"); r.Took.Start != 0 {
				t.Errorf("its guest was ready after %v, though one waited", r.Took.Start)
			}
			time.Sleep(time.Second)
			fl.set(func() {
				for id := range fl.idle {
					fl.alive[id]()
				}
			})
			time.Sleep(10 * time.Second)
			if _, idle := fl.count(); idle != 1 {
				t.Errorf("%d wait ten seconds after the first that died since a run had one, want 1", idle)
			}
		})
}

// TestDeafToRunsIsNoStorm: nor do runs that find their guest deaf have one started each time.
func TestDeafToRunsIsNoStorm(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		fl.set(func() { fl.deaf = true })
		time.Sleep(time.Second)
		const runs = 60
		before := fl.started()
		for range runs {
			call(t, s, "1ms")
			time.Sleep(2 * time.Second)
		}
		if ahead := fl.started() - before - runs; ahead < 1 || ahead > 15 {
			t.Errorf("%d guests were started ahead in more than two minutes, want some, and ever fewer", ahead)
		}
	})
}

// TestEngineGoes: guests whose streams have ended are passed over at once, however long the driver
// takes to see the containers gone.
func TestEngineGoes(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 4 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		for range 100 {
			call(t, s, "1ms")
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		fl.set(func() {
			if len(fl.idle) < 2 {
				t.Errorf("%d guests wait, want some", len(fl.idle))
			}
			fl.removal = 20 * time.Second
			for _, kill := range fl.alive {
				kill()
			}
		})
		synctest.Wait()
		if r := call(t, s, "1ms"); r.Took.Start > fl.startTime {
			t.Errorf("its guest was ready after %v, want what a start takes", r.Took.Start)
		}
	})
}

// TestCancelledBehindThePing: a run that is given up while the keeper waits for a guest's answer
// doesn't wait for it too.
func TestCancelledBehindThePing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		fl.set(func() { fl.deaf = true })
		for fl.pinged() == 0 {
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r, err := s.Run(ctx, sandbox.Request{Code: "1ms", Timeout: time.Minute}, hostFunc(echo))
		if err != nil || r.Status != sandbox.StatusCancelled || r.Took.Total > 100*time.Millisecond {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

// TestLogThatIsNotRead: a start that fails, and is told to a log that is not read, holds up no
// run.
func TestLogThatIsNotRead(t *testing.T) {
	var open chan struct{} // of the bubble
	change := func(c *sandbox.Config) {
		open = make(chan struct{})
		c.Log = slog.New(stuck{open: open})
	}
	bubble(t, change, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		fl.set(func() {
			fl.broken = func() error { return errors.New("out of order") }
			for _, kill := range fl.alive {
				kill()
			}
		})
		if err := look(s, t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		fl.set(func() { fl.broken = nil })
		call(t, s, "1ms")
		close(open)
	})
}

// stuck is a log that takes no warning before it is open.
type stuck struct {
	slog.Handler
	open chan struct{}
}

func (stuck) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelWarn }

func (s stuck) Handle(context.Context, slog.Record) error {
	<-s.open
	return nil
}
