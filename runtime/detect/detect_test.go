package detect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// script is one candidate of a test. It is the same one whenever its driver is opened anew.
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
		select {
		case <-time.After(d.delay):
		case <-ctx.Done():
			return runtime.Facts{}, context.Cause(ctx)
		}
		d.known.Store(true)
	}
	gone := &runtime.UnavailableError{Engine: d.name, Err: errors.New("nobody listens"), Next: "start " + d.name}
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
	return runtime.Facts{Engine: d.name, Endpoint: "unix:///" + d.name, Rootless: d.is() == rootless, Desktop: d.is() == desktop}, nil
}

func (d *scripted) Start(ctx context.Context, p runtime.Progress) error {
	defer d.enter()()
	d.started.Add(1)
	select {
	case <-time.After(d.boot):
	case <-ctx.Done():
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

// closed closes d and looks that nothing is left open. The bubble of synctest sees to the goroutines.
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

func TestChoice(t *testing.T) {
	tests := []struct {
		name    string
		scripts []*script
		want    string        // empty: none
		within  time.Duration // from the first call
	}{
		{"the first that is well", []*script{{kind: rootless}, {kind: rootless}}, "a", 0},
		{"the first, though it is slower", []*script{{kind: rootless, delay: time.Second}, {kind: rootless}}, "a", time.Second},
		{"the second, when the first takes too long", []*script{{kind: rootless, delay: 3 * time.Second}, {kind: rootless}}, "b", 2 * time.Second},
		{"the second at once, when the first refuses", []*script{{kind: refuses}, {kind: rootless, delay: 100 * time.Millisecond}}, "b", 100 * time.Millisecond},
		{"the only one, though it is slow", []*script{{kind: rootless, delay: 9 * time.Second}, {kind: refuses}}, "a", 9 * time.Second},
		{"none that takes longer", []*script{{kind: rootless, delay: 11 * time.Second}, {kind: refuses}}, "", 10 * time.Second},
		{"rootful comes last", []*script{{kind: rootful}, {kind: rootless, delay: time.Second}}, "b", time.Second},
		{"rootful after a virtual machine", []*script{{kind: rootful}, {kind: desktop, delay: time.Second}}, "b", time.Second},
		{"rootful, when nothing else answers", []*script{{kind: rootful}, {kind: hangs}}, "a", 10 * time.Second},
		{"rootful after one that takes longer to start", []*script{{kind: rootless, delay: 2500 * time.Millisecond}, {kind: rootful}}, "a", 2500 * time.Millisecond},
		{"rootful, when the others have refused", []*script{{kind: refuses, delay: 3 * time.Second}, {kind: rootful}}, "b", 3 * time.Second},
		{"what hangs holds up nothing that is preferred", []*script{{kind: rootless}, {kind: hangs}}, "a", 0},
		{"what is at rest, when something runs", []*script{{kind: rests}, {kind: rootless, delay: time.Second}}, "b", time.Second},
		{"nothing", []*script{{kind: refuses}, {kind: refuses}}, "", 0},
		{"nothing but what hangs", []*script{{kind: hangs}}, "", 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := over(t, tt.scripts...)
				begin := time.Now()
				f, err := d.Facts(t.Context())
				if f.Engine != tt.want || (err == nil) != (tt.want != "") {
					t.Errorf("got %q, %v; want %q", f.Engine, err, tt.want)
				}
				if took := time.Since(begin); took > tt.within {
					t.Errorf("it took %v, want %v", took, tt.within)
				}
				var gone *runtime.UnavailableError
				if err != nil && !errors.As(err, &gone) {
					t.Errorf("the error is %v, want an *UnavailableError", err)
				}
				for i, v := range d.Verdicts() {
					if v.Chosen != (v.Name == tt.want) || v.Err == nil != (v.Facts.Engine != "") || v.Took > 10*time.Second {
						t.Errorf("verdict %d is %+v", i, v)
					}
				}
				closed(t, d, tt.scripts...)
			})
		})
	}
}

// oracle is the choice by the package's words, as of each moment at which something changes.
func oracle(scripts []*script) (string, time.Duration) {
	rank := func(i int) int {
		if scripts[i].kind == rootful {
			return i + len(scripts)
		}
		return i
	}
	moments := []time.Duration{0, 2 * time.Second, 10 * time.Second}
	for _, s := range scripts {
		moments = append(moments, s.delay)
	}
	slices.Sort(moments)
	for _, now := range moments {
		best, sure := -1, true
		answered := func(s *script) bool { return s.kind != hangs && s.delay <= now }
		for i, s := range scripts {
			if answered(s) && s.kind <= desktop && (best < 0 || rank(i) < rank(best)) {
				best = i
			}
		}
		for i, s := range scripts {
			sure = sure && (answered(s) || best >= 0 && i > rank(best))
		}
		if best >= 0 && (sure || now >= 2*time.Second && scripts[best].kind != rootful || now >= 10*time.Second) {
			return scripts[best].name, now
		}
		if sure || now >= 10*time.Second {
			return "", now
		}
	}
	return "", 10 * time.Second
}

// TestChoiceOfAny compares choices among random engines with the oracle's.
func TestChoiceOfAny(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	chosen := 0
	for i := range 400 {
		scripts := make([]*script, 1+r.IntN(4))
		var kindsOf []string
		for j := range scripts {
			// Apart by odd steps, so that no two things happen at the same moment.
			scripts[j] = &script{name: string(rune('a' + j)), kind: kind(r.IntN(int(kinds))), delay: time.Duration(r.IntN(1250))*10*time.Millisecond + time.Duration(j+1)*time.Millisecond}
			kindsOf = append(kindsOf, fmt.Sprintf("%s: kind %d after %v", scripts[j].name, scripts[j].kind, scripts[j].delay))
		}
		want, when := oracle(scripts)
		synctest.Test(t, func(t *testing.T) {
			d := over(t, scripts...)
			begin := time.Now()
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					f, err := d.Facts(t.Context())
					if took := time.Since(begin); f.Engine != want || (err == nil) != (want != "") || took != when {
						t.Errorf("%d: %v: got %q after %v (%v), want %q after %v", i, kindsOf, f.Engine, took, err, want, when)
					}
				})
			}
			wg.Wait()
			for _, s := range scripts {
				if n := s.asked.Load(); s.name != want && n != 1 {
					t.Errorf("%s was asked %d times", s.name, n)
				}
			}
			closed(t, d, scripts...)
		})
		if want != "" {
			chosen++
		}
	}
	if chosen < 100 {
		t.Errorf("only %d of 400 had anything to choose", chosen)
	}
}

func TestSurveyHearsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripts := []*script{{kind: rootless}, {kind: rootless, delay: 5 * time.Second}, {kind: refuses, delay: time.Second}, {kind: hangs}}
		d := over(t, scripts...)
		if f, err := d.Survey(t.Context()); err != nil || f.Engine != "a" {
			t.Errorf("got %+v, %v", f, err)
		}
		v := d.Verdicts()
		if !v[0].Chosen || v[1].Err != nil || v[1].Facts.Engine != "b" || v[1].Chosen || !strings.Contains(v[2].Err.Error(), "nobody listens") || v[3].Err == nil {
			t.Errorf("got %+v", v)
		}
		closed(t, d, scripts...)
	})
}

// TestLost: the call in which the engine goes away fails; the next one finds another, or the same one when it is back.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &script{kind: rootless}, &script{kind: refuses}
		d := over(t, a, b)
		if _, err := d.Facts(t.Context()); err != nil {
			t.Fatal(err)
		}
		long, end := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { d.Run(long, runtime.Spec{}, runtime.Stdio{}) })
		synctest.Wait()

		a.become(refuses)
		gone := &runtime.UnavailableError{Engine: "a", Err: errors.New("it went away")}
		a.mu.Lock()
		a.runErr = gone
		a.mu.Unlock()
		if _, err := d.Run(t.Context(), runtime.Spec{}, runtime.Stdio{}); !errors.Is(err, gone) {
			t.Errorf("got %v, want the driver's own error", err)
		}
		if v := d.Verdicts(); v[0].Chosen || !errors.Is(v[0].Err, gone) {
			t.Errorf("the verdict is %+v", v[0])
		}
		if _, err := d.Orphans(t.Context(), runtime.Owner{}); err == nil {
			t.Error("housekeeping found an engine")
		}
		before := a.asked.Load()
		for range 5 {
			if _, err := d.Facts(t.Context()); err == nil {
				t.Error("an engine was found where there is none")
			}
		}
		if n := a.asked.Load() - before; n != 5 {
			t.Errorf("5 calls one after the other asked %d times", n)
		}

		b.become(rootless)
		if f, err := d.Facts(t.Context()); err != nil || f.Engine != "b" {
			t.Errorf("got %+v, %v; want b", f, err)
		}
		if i, ok, err := d.FindImage(t.Context(), "x"); !ok || err != nil || i.ID != "b" {
			t.Errorf("got %+v, %v, %v", i, ok, err)
		}
		end() // the long run was on the first driver, which must have stayed open for it
		wg.Wait()
		closed(t, d, a, b)
	})
}

// TestLostIsKept: what an engine that went away still has of ours is its driver's to remove. So that driver is asked again, and
// closed only at the end.
func TestLostIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &script{kind: rootless}, &script{kind: refuses}
		d := over(t, a, b)
		want := func(engine string) {
			t.Helper()
			if f, err := d.Facts(t.Context()); f.Engine != engine || (err == nil) != (engine != "") {
				t.Fatalf("got %q, %v; want %q", f.Engine, err, engine)
			}
			synctest.Wait() // what isn't kept is closed
		}
		lose := func(s *script) {
			t.Helper()
			s.become(refuses)
			want("")
		}
		want("a")
		lose(a)
		want("")
		a.become(rootless)
		want("a")
		lose(a)
		b.become(rootless)
		want("b")
		if a.open.Load() != 1 {
			t.Error("the driver of the engine that went away was closed when another one was chosen")
		}
		lose(b)
		a.become(rootless)
		want("a")
		if n := a.opened.Load(); n != 1 {
			t.Errorf("the driver that was chosen was opened %d times", n)
		}
		if n := b.open.Load(); n != 1 {
			t.Errorf("%d drivers of b are open", n)
		}
		closed(t, d, a, b)
	})
}

// TestClosedBeforeTheWaiterWakes: the choice is made, and the driver closed before those who wait for it get to use it.
func TestClosedBeforeTheWaiterWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &script{kind: rootless, delay: time.Second}, &script{kind: hangs}
		d := over(t, a, b)
		var wg sync.WaitGroup
		wg.Go(func() { // it wants to hear b too, long after a was chosen
			if f, err := d.Survey(t.Context()); err == nil {
				t.Errorf("a closed driver gave %+v", f)
			}
		})
		if _, err := d.Facts(t.Context()); err != nil {
			t.Error(err)
		}
		closed(t, d, a, b)
		wg.Wait()
	})
}

// TestNoStorm: a hundred calls at once make one search, though no engine is there.
func TestNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &script{kind: refuses, delay: time.Second}
		d := over(t, a)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := d.PullImage(t.Context(), "x", nil); err == nil {
					t.Error("there is no engine")
				}
			})
		}
		wg.Wait()
		if n := a.asked.Load(); n != 1 {
			t.Errorf("the engine was asked %d times", n)
		}
		closed(t, d, a)
	})
}

// TestWaitersLeave: a search ends with its last waiter, and the next call searches anew.
func TestWaitersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &script{kind: hangs}
		d := over(t, a)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if _, err := d.Facts(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 100*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
		synctest.Wait()
		if n := a.open.Load(); n != 0 {
			t.Errorf("%d drivers are still open, and nobody waits for them", n)
		}
		a.become(rootless)
		if f, err := d.Facts(t.Context()); err != nil || f.Engine != "a" {
			t.Errorf("got %+v, %v", f, err)
		}
		closed(t, d, a)
	})
}

// TestNothingIsChosenForNobody: an answer that was there when the last waiter left chooses nothing.
func TestNothingIsChosenForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &script{kind: hangs}, &script{kind: rootless}
		d := over(t, a, b)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := d.Facts(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if _, err := d.Orphans(t.Context(), runtime.Owner{}); err == nil || b.open.Load() != 0 {
			t.Errorf("got %v, and %d drivers of b are open", err, b.open.Load())
		}
		closed(t, d, a, b)
	})
}

func TestClosedWhileSearching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &script{kind: hangs}, &script{kind: rootful}
		d := over(t, a, b)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := d.Facts(t.Context()); err == nil {
				t.Error("a closed driver has chosen")
			}
		})
		synctest.Wait()
		closed(t, d, a, b)
		wg.Wait()
		if _, err := d.Facts(t.Context()); err == nil {
			t.Error("a closed driver has chosen")
		}
	})
}

func TestStart(t *testing.T) {
	dormant := func(err error) bool {
		var u *runtime.UnavailableError
		return errors.As(err, &u) && u.Dormant
	}
	t.Run("nothing else runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := &script{kind: refuses}, &script{kind: rests}
			d := over(t, a, b)
			if _, err := d.Facts(t.Context()); !dormant(err) {
				t.Fatalf("got %v, want a dormant engine", err)
			}
			if b.started.Load() != 0 {
				t.Error("it was started unasked")
			}
			var lines []string
			if err := d.Start(t.Context(), func(l string) { lines = append(lines, l) }); err != nil || len(lines) != 1 {
				t.Errorf("got %v, %q", err, lines)
			}
			if f, err := d.Facts(t.Context()); err != nil || f.Engine != "b" || !d.Verdicts()[1].Chosen {
				t.Errorf("got %+v, %v", f, err)
			}
			b.become(rests) // stopped for want of work
			if _, err := d.Facts(t.Context()); !dormant(err) {
				t.Errorf("got %v, want a dormant engine", err)
			}
			if err := d.Start(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if _, err := d.Facts(t.Context()); err != nil {
				t.Error(err)
			}
			closed(t, d, a, b)
		})
	})
	t.Run("its caller gives up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := &script{kind: rests, boot: time.Minute}
			d := over(t, a)
			if _, err := d.Facts(t.Context()); !dormant(err) {
				t.Fatalf("got %v, want a dormant engine", err)
			}
			first := a.opened.Load()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := d.Start(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
			synctest.Wait()
			for range 2 { // during the start, and after it was given up
				if _, err := d.Facts(t.Context()); !dormant(err) {
					t.Errorf("got %v, want a dormant engine", err)
				}
				wg.Wait()
			}
			if n := a.opened.Load() - first; n != 0 {
				t.Errorf("the driver that is starting was replaced %d times", n)
			}
			if err := d.Start(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if f, err := d.Facts(t.Context()); err != nil || f.Engine != "a" {
				t.Errorf("got %+v, %v", f, err)
			}
			closed(t, d, a)
		})
	})
	t.Run("who asks meanwhile gives up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := &script{kind: rests}
			d := over(t, a)
			if _, err := d.Facts(t.Context()); !dormant(err) {
				t.Fatalf("got %v, want a dormant engine", err)
			}
			a.become(hangs) // it is starting, and doesn't say what it is
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := d.Facts(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			synctest.Wait()
			a.become(rests)
			if err := d.Start(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if f, err := d.Facts(t.Context()); err != nil || f.Engine != "a" || a.opened.Load() != 1 {
				t.Errorf("got %+v, %v, and the driver was opened %d times", f, err, a.opened.Load())
			}
			closed(t, d, a)
		})
	})
	t.Run("it doesn't start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := &script{kind: broken}
			d := over(t, a)
			if _, err := d.Facts(t.Context()); !dormant(err) {
				t.Fatalf("got %v, want a dormant engine", err)
			}
			if err := d.Start(t.Context(), nil); err == nil || !strings.Contains(d.Verdicts()[0].Err.Error(), "doesn't start") {
				t.Errorf("got %v, %+v", err, d.Verdicts())
			}
			a.become(rootless)
			if _, err := d.Facts(t.Context()); err != nil {
				t.Error(err)
			}
			closed(t, d, a)
		})
	})
	t.Run("nothing is at rest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := &script{kind: refuses}
			d := over(t, a)
			if err := d.Start(t.Context(), nil); err == nil {
				t.Error("no error")
			}
			closed(t, d, a)
		})
	})
}

// TestNone: one line for each candidate, and the best next step.
func TestNone(t *testing.T) {
	missing := &runtime.UnavailableError{Engine: "podman", Err: fmt.Errorf("no program podman: %w", exec.ErrNotFound), Next: "install it"}
	rootfulOnly := &runtime.UnavailableError{Engine: "docker", Endpoint: "unix:///var/run/docker.sock", Err: errors.New("it runs\nas root"), Next: "accept that risk"}
	nothing := &runtime.UnavailableError{Engine: "docker", Err: fmt.Errorf("no socket: %w", exec.ErrNotFound)}
	tests := []struct {
		name   string
		os     string
		errs   []error
		want   []string
		hint   string
		hidden string
	}{
		{"one is installed", "linux", []error{missing, rootfulOnly}, []string{"podman: no program podman", "\ndocker: at unix:///var/run/docker.sock: it runs as root"}, "accept that risk", "install"},
		{"none is", "linux", []error{missing, nothing}, []string{"podman: ", "\ndocker: no socket"}, "sudo apt install podman", "brew"},
		{"none is, on macOS", "darwin", []error{missing, nothing}, []string{"no container engine can be used"}, "brew install podman", "apt"},
		{"none is, on Windows", "windows", []error{missing, nothing}, nil, "winget install", "apt"},
		{"one is broken in a way without a hint", "linux", []error{missing, errors.New("odd")}, []string{"docker: odd"}, "mcp-bridge doctor", "apt"},
		{"none is where one was named", "at", []error{missing, nothing}, []string{"podman: "}, "install it", "apt"},
		{"the only one", "linux", []error{missing}, []string{"podman is not available: no program podman"}, "install it", "apt"},
		{"the only one, oddly", "linux", []error{errors.New("odd")}, []string{"podman is not available: odd"}, "mcp-bridge doctor", "apt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := detect.Config{OS: tt.os}
				for i, err := range tt.errs {
					s := &script{t: t, name: []string{"podman", "docker"}[i], kind: refuses, err: err}
					c := detect.Candidate{Name: s.name, Open: s.driver}
					if tt.os == "at" {
						c.Endpoint = "unix:///named"
					}
					cfg.Candidates = append(cfg.Candidates, c)
				}
				d := detect.New(cfg)
				defer d.Close()
				_, err := d.Facts(t.Context())
				for _, want := range tt.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want %q in it", err, want)
					}
				}
				if hint := detect.Hint(err); !strings.Contains(hint, tt.hint) || strings.Contains(hint, tt.hidden) {
					t.Errorf("got the hint %q, want %q", hint, tt.hint)
				}
			})
		})
	}
}
