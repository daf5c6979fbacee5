package sandbox_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestDeafGuestsAreNoStorm: guests that don't answer while they wait are replaced ever more rarely, and at once again when one has
// answered a run.
func TestDeafGuestsAreNoStorm(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.StandbyIdle = time.Hour }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
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
		time.Sleep(2 * time.Second)
		if _, idle := fl.count(); idle != 1 {
			t.Errorf("%d wait two seconds after the first that died since a run had one, want 1", idle)
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

// TestFirstInLine: when one of two guests that runs wait for can't be started, the run that came first has the other.
func TestFirstInLine(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		var all sync.WaitGroup
		var ended [3]time.Time
		run := func(i int) {
			all.Go(func() {
				call(t, s, "10ms")
				ended[i] = time.Now()
			})
		}
		run(0) // takes the one that waits, so that another is begun,
		time.Sleep(40 * time.Millisecond)
		run(1) // which this one waits for, so that a second is begun
		time.Sleep(60 * time.Millisecond)
		run(2)
		time.Sleep(20 * time.Millisecond)
		fl.set(func() {
			first := fl.starts
			for id := range fl.alive {
				if !fl.ran[id] {
					first = min(first, id)
				}
			}
			if fl.idle[first] || first == fl.starts {
				t.Errorf("guest %d of %d is to fail, want the first of two that are being started", first, fl.starts)
			}
			fl.alive[first]()
		})
		all.Wait()
		if !ended[1].Before(ended[2]) {
			t.Errorf("the run that came last was over %v before the one that came first", ended[1].Sub(ended[2]))
		}
	})
}

// TestReadyIsHandedOver: a guest that a run waits for is its as soon as it is ready, however long the engine takes to say what it is.
func TestReadyIsHandedOver(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		call(t, s, "50ms") // the next one is begun meanwhile
		time.AfterFunc(20*time.Millisecond, func() { fl.set(func() { fl.slow = 5 * time.Second }) })
		if r := call(t, s, "1ms"); r.Took.Start >= fl.startTime {
			t.Errorf("its guest was ready after %v, want the rest of %v", r.Took.Start, fl.startTime)
		}
		fl.set(func() { fl.slow = 0 })
	})
}

// TestEngineGoes: guests whose streams have ended are passed over at once, however long the driver takes to see the containers gone.
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

// TestCancelledBehindThePing: a run that is given up while the keeper waits for a guest's answer doesn't wait for it too.
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
