package detect_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
)

// kind is how a scripted engine answers.
type kind int

const (
	rootless kind = iota
	rootful
	desktop
	refuses
	rests  // until it is started
	broken // at rest, and can't be started
	hangs  // until it is no longer waited for
	kinds
)

// script is one candidate of a test. It is the same one whenever its driver is opened again.
type script struct {
	t     *testing.T
	name  string
	delay time.Duration
	boot  time.Duration // that a start takes
	err   error         // of refuses; nil for one of its own

	mu     sync.Mutex
	kind   kind
	runErr error

	asked, open, opened, running, started atomic.Int32
}

func (s *script) become(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind = k
}

func (s *script) is() kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kind
}

// scripted is an opened driver. Its methods fail the test when they are used after Close.
type scripted struct {
	runtime.Driver // nil, of what no test uses
	*script
	closed atomic.Bool
	known  atomic.Bool // it has answered; it remembers what
	busy   atomic.Int32
}

func (s *script) driver() runtime.Driver {
	s.open.Add(1)
	s.opened.Add(1)
	return &scripted{script: s}
}

func (d *scripted) enter() func() {
	if d.closed.Load() {
		d.t.Errorf("%s is used after it was closed", d.name)
	}
	d.busy.Add(1)
	return func() { d.busy.Add(-1) }
}

func (d *scripted) Name() string { return d.name }

func (d *scripted) Facts(ctx context.Context) (runtime.Facts, error) {
	defer d.enter()()
	d.asked.Add(1)
	if d.is() == hangs {
		<-ctx.Done()
		return runtime.Facts{}, context.Cause(ctx)
	}
	if !d.known.Load() {
		if !sleep(ctx, d.delay) {
			return runtime.Facts{}, context.Cause(ctx)
		}
		d.known.Store(true)
	}
	gone := &runtime.UnavailableError{Engine: d.name, Err: errors.New("nothing listens"),
		Next: "start " + d.name}
	switch d.is() {
	case rests, broken:
		gone.Dormant = true
		return runtime.Facts{}, gone
	case refuses:
		if d.err != nil {
			return runtime.Facts{}, d.err
		}
		return runtime.Facts{}, gone
	}
	return runtime.Facts{Engine: d.name, Endpoint: "unix:///" + d.name, Rootless: d.is() == rootless,
		Desktop: d.is() == desktop}, nil
}

func (d *scripted) Start(ctx context.Context, p runtime.Progress) error {
	defer d.enter()()
	d.started.Add(1)
	if !sleep(ctx, d.boot) {
		return context.Cause(ctx)
	}
	if d.is() == broken {
		return &runtime.UnavailableError{Engine: d.name, Err: errors.New("it doesn't start")}
	}
	if p != nil {
		p("starting " + d.name)
	}
	d.become(rootless)
	return nil
}

func (d *scripted) FindImage(_ context.Context, ref string) (runtime.Image, bool, error) {
	defer d.enter()()
	return runtime.Image{Ref: ref, ID: d.name}, true, nil
}

func (d *scripted) PullImage(_ context.Context, ref string, _ runtime.Progress) (runtime.Image, error) {
	defer d.enter()()
	return runtime.Image{Ref: ref, ID: d.name}, nil
}

func (d *scripted) ImportImage(context.Context, string, io.Reader) error {
	defer d.enter()()
	return nil
}

func (d *scripted) Run(ctx context.Context, _ runtime.Spec, _ runtime.Stdio) (runtime.Exit, error) {
	defer d.enter()()
	d.running.Add(1)
	defer d.running.Add(-1)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return runtime.Exit{}, d.runErr
}

func (d *scripted) Orphans(context.Context, runtime.Owner) ([]runtime.Orphan, error) {
	defer d.enter()()
	return []runtime.Orphan{{ID: d.name}}, nil
}

func (d *scripted) Remove(context.Context, ...string) error {
	defer d.enter()()
	return nil
}

func (d *scripted) Close() error {
	if d.closed.Swap(true) {
		d.t.Errorf("%s is closed twice", d.name)
	}
	if n := d.busy.Load(); n > 0 {
		d.t.Errorf("%s is closed while %d calls are under way", d.name, n)
	}
	d.open.Add(-1)
	return nil
}

// over is a driver over scripts.
func over(t *testing.T, scripts ...*script) *detect.Driver {
	var cfg detect.Config
	for i, s := range scripts {
		s.t = t
		if s.name == "" {
			s.name = string(rune('a' + i))
		}
		cfg.Candidates = append(cfg.Candidates, detect.Candidate{Name: s.name, Open: s.driver})
	}
	return detect.New(cfg)
}

// closed closes d and looks that nothing is left open. The bubble of synctest sees to the
// goroutines.
func closed(t *testing.T, d *detect.Driver, scripts ...*script) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for _, s := range scripts {
		if n := s.open.Load(); n != 0 {
			t.Errorf("%d drivers of %s were not closed", n, s.name)
		}
	}
}

// sleep says whether d passed before ctx ended. It makes no timer that is due already: in a bubble
// its channel is served on the race detector's state of another goroutine, by which the detector
// dies (Go 1.26).
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
