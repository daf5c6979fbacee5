package sandbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// prepareTimeout bounds the wait for an engine and the pull of an image together.
const prepareTimeout = 15 * time.Minute

// machine is what a run needs to know about the engine: proof that it was reached, and the images
// it has.
type machine struct {
	look  uint64 // which look at the engine found it
	facts runtime.Facts
	base  runtime.Image // the one of Config.Images
	env   *Environment  // of the run; nil for base alone
	age   time.Duration // the longest that a guest lasts which is for many runs; 0 for one run
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
	last    string              // of what they were told
}

// Look reaches the engine, starting it if it is at rest, and makes the image present, pulling it if
// need be. It returns the engine and the image that runs would have. Concurrent callers and runs
// share one attempt, which ends when none of them waits any more; a failure is not remembered.
// Errors are *runtime.UnavailableError, *runtime.ImageError and *UnfitError, each with a hint, or
// the driver's own.
func (s *Sandbox) Look(ctx context.Context, p runtime.Progress) (runtime.Facts, runtime.Image, error) {
	m, err := s.prepareFor(ctx, nil, nil, p)
	return m.facts, m.base, err
}

// prepareFor is Look for a run in an environment that has a warm guest; both may be nil. With a
// warm guest of the machine that was found before, the engine needn't be asked: the guest's streams
// go through it, and end with it.
func (s *Sandbox) prepareFor(ctx context.Context, e *Environment, warm *guest,
	p runtime.Progress) (machine, error) {
	m := s.found()
	if m != nil && (warm == nil || warm.over() || warm.class != m.in(e).class()) {
		m = s.renew(ctx, m)
	}
	if m != nil {
		return m.in(e), nil
	}
	found, err := s.prepared(ctx, p)
	return found.in(e), err
}

func (s *Sandbox) prepared(ctx context.Context, p runtime.Progress) (machine, error) {
	pr := &s.prepare
	pr.mu.Lock()
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
	last := g.last
	pr.mu.Unlock()
	if p != nil && last != "" {
		p(last) // so that a late one knows what goes on
	}

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
			pr.going = nil // the next one starts over
		}
	}
	pr.mu.Unlock()
	if err != nil {
		return machine{}, err
	}
	return g.m, nil
}

// startPreparing runs under pr.mu. The goroutine ends with its context, which is no call's and ends
// with the last waiter.
func (s *Sandbox) startPreparing() (*preparing, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), prepareTimeout)
	g := &preparing{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer s.runs.Done()
		defer cancel()
		tell := func(line string) {
			s.prepare.mu.Lock()
			to := slices.Clone(g.lines)
			g.last = line
			s.prepare.mu.Unlock()
			for _, p := range to {
				(*p)(line)
			}
		}
		m, err := s.reach(ctx, tell)
		if isGone(err) { // the driver has forgotten it, and looks again
			m, err = s.reach(ctx, tell)
		}
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

// renew returns what was found before with what the driver says of the engine now: it may learn
// what its engine can't do when it starts a container. It returns nil for an engine that is away or
// at rest, or another one.
func (s *Sandbox) renew(ctx context.Context, m *machine) *machine {
	f, err := s.driver.Facts(ctx) // remembered by the driver while the engine answers
	var now *machine
	if err == nil && f.Engine == m.facts.Engine && f.Endpoint == m.facts.Endpoint {
		same := *m
		same.facts = f
		now = &same
	}
	s.prepare.mu.Lock()
	defer s.prepare.mu.Unlock()
	if s.prepare.ready == m {
		s.prepare.ready = now
	}
	return now
}

func (s *Sandbox) reach(ctx context.Context, p runtime.Progress) (m machine, err error) {
	if m.facts, err = s.awake(ctx, p); err != nil {
		return machine{}, err
	}
	s.reap()
	if m.base, err = s.findImage(ctx, m.facts, p); err != nil {
		return machine{}, err
	}
	m.look = s.looks.Add(1)
	return m, nil
}

// awake returns the engine's account of itself, after it was started if it was at rest.
func (s *Sandbox) awake(ctx context.Context, p runtime.Progress) (runtime.Facts, error) {
	f, err := s.driver.Facts(ctx)
	var rest *runtime.UnavailableError
	starter, ok := s.driver.(runtime.Starter)
	if !ok || !errors.As(err, &rest) || !rest.Dormant {
		return f, err
	}
	p("starting " + rest.Engine)
	if err := starter.Start(ctx, p); err != nil {
		return f, err
	}
	return s.driver.Facts(ctx)
}

// forget makes the next run look at the engine again, unless that was done since m was found:
// something that was there is gone.
func (s *Sandbox) forget(m machine) {
	s.prepare.mu.Lock()
	defer s.prepare.mu.Unlock()
	if s.prepare.ready != nil && s.prepare.ready.look == m.look {
		s.prepare.ready = nil
	}
}

// found returns what was found before, or nil.
func (s *Sandbox) found() *machine {
	s.prepare.mu.Lock()
	defer s.prepare.mu.Unlock()
	return s.prepare.ready
}
