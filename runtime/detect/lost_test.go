package detect_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// TestLost: the call in which the engine goes away fails; the next one finds another, or the same
// one when it is back.
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
				t.Error("an engine was found where there isn't one")
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

// TestLostIsKept: what an engine that went away still has of ours is its driver's to remove. So
// that driver is asked again, and closed only at the end.
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

// tells is an engine whose driver keeps a lease, and can look at its containers' network.
type tells struct {
	runtimetest.Local
	lost error
}

func (e *tells) Lost() error                                 { return e.lost }
func (*tells) Reaches(context.Context, string) (bool, error) { return true, nil }

// TestLease: a driver that can tell is asked whether its engine is lost, once it was chosen.
func TestLease(t *testing.T) {
	e := &tells{lost: errors.New("its lease is over")}
	d := detect.New(detect.Config{Candidates: []detect.Candidate{{Name: "c",
		Open: func() runtime.Driver { return e }}}})
	defer d.Close()
	if err := d.Lost(); err != nil {
		t.Errorf("before any use: %v", err)
	}
	if reached, err := d.Reaches(t.Context(), "x"); !reached || err != nil {
		t.Errorf("got %v, %v", reached, err)
	}
	if err := d.Lost(); !errors.Is(err, e.lost) {
		t.Errorf("got %v", err)
	}
	e.lost = nil
	if err := d.Lost(); err != nil {
		t.Error(err)
	}
}

// TestNoLease: other drivers tell nothing of either.
func TestNoLease(t *testing.T) {
	d := detect.New(detect.Config{Candidates: []detect.Candidate{{Name: "l",
		Open: func() runtime.Driver { return runtimetest.Local{} }}}})
	defer d.Close()
	if _, err := d.Reaches(t.Context(), "x"); err == nil {
		t.Error("an engine without a network has told of one")
	}
	if err := d.Lost(); err != nil {
		t.Error(err)
	}
}
