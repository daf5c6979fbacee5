package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// loads is part h: as many calls as can be made for a while, by 1, 2, 4 and 8 callers of one bridge, each of whom makes the next
// call when it has the answer to the last; and podman run in a loop with the same parallelism.
func (s *suite) loads(ctx context.Context) error {
	if err := s.readyEngine(ctx); err != nil {
		return err
	}
	for _, n := range s.scale.callers {
		if ctx.Err() != nil {
			break
		}
		if err := s.load(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) load(ctx context.Context, callers int) (err error) {
	c, err := s.warm(ctx, nil)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var alive series
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(watching, c.pid(), &alive) })
	calls, rate := sustained(ctx, callers, s.scale.load, func() (time.Duration, error) {
		_, took, err := c.python(ctx, "print(1)", "1\n", noServers)
		return took, err
	})
	stop()
	watch.Wait()
	if err := c.close(); err != nil {
		return err
	}
	podman, podmanRate := sustained(ctx, callers, s.scale.load, func() (time.Duration, error) { return s.podmanRun(ctx) })

	what := fmt.Sprintf("callers: %d, for %v: ", callers, s.scale.load)
	s.report.figure("h", what+"calls", false, "1/s", series{values: []float64{rate}})
	s.report.figure("h", what+"each call", false, "ms", calls)
	s.report.figure("h", what+"containers alive", false, "", alive)
	s.report.figure("h", what+"podman runs", true, "1/s", series{values: []float64{podmanRate}})
	s.report.figure("h", what+"each podman run", true, "ms", podman)
	s.report.atLeast("h", fmt.Sprintf("callers: %d, ≥ 1.5 × the rate of as many podman runs", callers), rate/podmanRate, "times", 1.5)
	return nil
}

// sustained has callers call again and again for a while, and says how many calls a second have succeeded. A caller whose call fails
// pauses, so that a dead bridge isn't asked a million times.
func sustained(ctx context.Context, callers int, span time.Duration, call func() (time.Duration, error)) (calls series, rate float64) {
	begin := time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex
	for range callers {
		all.Go(func() {
			for time.Since(begin) < span && ctx.Err() == nil {
				took, err := call()
				mu.Lock()
				calls.took(took, err)
				mu.Unlock()
				if err != nil {
					sleep(ctx, time.Second)
				}
			}
		})
	}
	all.Wait()
	return calls, float64(len(calls.values)) / time.Since(begin).Seconds()
}

// watch counts the containers of a bridge, seldom enough to cost next to nothing.
func (s *suite) watch(ctx context.Context, pid int, to *series) {
	for sleep(ctx, min(2*time.Second, s.scale.load/2)) {
		n, err := s.engine.alive(ctx, pid)
		switch {
		case err == nil:
			to.add(float64(n))
		case !errors.Is(err, context.Canceled):
			to.fail(err)
		}
	}
}
