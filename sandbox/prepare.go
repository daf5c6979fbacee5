package sandbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// prepareTimeout bounds the wait for an engine and the pull of an image together.
const prepareTimeout = 15 * time.Minute

// machine is what a run needs to know about the engine: proof that it was reached, and the image it has.
type machine struct {
	facts runtime.Facts
	image runtime.Image
}

// preparation finds the engine and its image once for all who wait, and remembers success.
type preparation struct {
	mu    sync.Mutex
	ready *machine
	going *preparing
}

type preparing struct {
	done    chan struct{} // closed when m and err are set
	m       machine
	err     error
	cancel  context.CancelFunc
	waiters int
	lines   []*runtime.Progress // one per waiter that wants them
}

// Prepare reaches the engine and makes the image present, pulling it if need be, outside any run's time. It returns at once
// when that was done before. Concurrent callers share one attempt, which ends when none of them waits any more; a failure is
// not remembered. Errors are the driver's: *runtime.UnavailableError and *runtime.ImageError carry a hint.
func (s *Sandbox) Prepare(ctx context.Context, p runtime.Progress) error {
	_, err := s.prepared(ctx, p)
	return err
}

func (s *Sandbox) prepared(ctx context.Context, p runtime.Progress) (machine, error) {
	pr := &s.prepare
	pr.mu.Lock()
	if pr.ready != nil {
		m := *pr.ready
		pr.mu.Unlock()
		return m, nil
	}
	g := pr.going
	if g == nil {
		var err error
		if g, err = s.startPreparing(); err != nil {
			pr.mu.Unlock()
			return machine{}, err
		}
		pr.going = g
	}
	g.waiters++
	if p != nil {
		g.lines = append(g.lines, &p)
	}
	pr.mu.Unlock()

	var err error
	select {
	case <-g.done:
		err = g.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	pr.mu.Lock()
	g.waiters--
	g.lines = slices.DeleteFunc(g.lines, func(l *runtime.Progress) bool { return l == &p })
	if g.waiters == 0 {
		g.cancel()
		if pr.going == g {
			pr.going = nil // whoever comes next starts anew
		}
	}
	pr.mu.Unlock()
	if err != nil {
		return machine{}, err
	}
	return g.m, nil
}

// startPreparing runs under pr.mu. The goroutine ends with its context, which is no call's and ends with the last waiter.
func (s *Sandbox) startPreparing() (*preparing, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), prepareTimeout)
	g := &preparing{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer s.runs.Done()
		defer cancel()
		m, err := s.reach(ctx, func(line string) {
			s.prepare.mu.Lock()
			to := slices.Clone(g.lines)
			s.prepare.mu.Unlock()
			for _, p := range to {
				(*p)(line)
			}
		})
		s.prepare.mu.Lock()
		defer s.prepare.mu.Unlock()
		g.m, g.err = m, err
		if err == nil && s.prepare.ready == nil {
			s.prepare.ready = &g.m
		}
		if s.prepare.going == g {
			s.prepare.going = nil
		}
		close(g.done)
	}()
	return g, nil
}

func (s *Sandbox) reach(ctx context.Context, p runtime.Progress) (machine, error) {
	facts, err := s.driver.Facts(ctx)
	if err != nil {
		return machine{}, err
	}
	if gone, err := runtime.Reap(ctx, s.driver, s.cfg.Owner); err != nil {
		s.log.Warn("containers of dead bridges could not be looked for", "err", err)
	} else if len(gone) > 0 {
		s.log.Info("containers of dead bridges removed", "count", len(gone))
	}
	for _, ref := range s.cfg.Images {
		i, ok, err := s.driver.FindImage(ctx, ref)
		if err != nil {
			return machine{}, err
		}
		if ok {
			return machine{facts: facts, image: i}, nil
		}
	}
	i, err := s.driver.PullImage(ctx, s.cfg.Images[0], p)
	if err != nil {
		return machine{}, err
	}
	return machine{facts: facts, image: i}, nil
}

// forget makes the next run look at the engine again: something that was there is gone.
func (s *Sandbox) forget() {
	s.prepare.mu.Lock()
	defer s.prepare.mu.Unlock()
	s.prepare.ready = nil
}
