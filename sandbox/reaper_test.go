package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestReaper: containers of dead owners go when the engine is reached, those of living ones never,
// whatever the clocks say.
func TestReaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		self := runtime.Self()
		dead, reused, alive, foreign := self, self, self, self
		dead.Instance, dead.PID = "dead", 1<<22+1 // beyond the kernel's highest
		reused.Instance, reused.Started = "reused", "1"
		alive.Instance = "alive"
		foreign.Instance, foreign.PID, foreign.BootID = "foreign", dead.PID, "another machine"
		years := func(n int) time.Time { return time.Now().AddDate(n, 0, 0) }
		e := &engine{images: map[string]runtime.Image{"any": has("1")}, orphans: []runtime.Orphan{
			{ID: "dead", Owner: dead, Created: years(10)}, // the clock was set back since
			{ID: "reused", Owner: reused, Created: years(0)},
			{ID: "alive", Owner: alive, Created: years(-10)}, // or forward
			{ID: "foreign", Owner: foreign, Created: years(-10)},
			{ID: "mine", Owner: self, Created: years(-10)},
		}}
		cfg := config()
		cfg.Owner = self
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		s, err := sandbox.New(e, cfg)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // of the bubble
		if n := e.count("orphans"); n != 0 {
			t.Errorf("an engine that was never used was asked %d times", n)
		}
		if err := look(s, t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if want := []string{"dead", "reused"}; !slices.Equal(e.removed, want) {
			t.Errorf("at first contact %v were removed, want %v", e.removed, want)
		}
		later := dead
		later.Instance = "later"
		e.set(func(e *engine) {
			e.orphans, e.away = append(e.orphans, runtime.Orphan{ID: "later", Owner: later}), true
		})
		if err := look(s, t.Context(), nil); err == nil {
			t.Error("an engine that is away was prepared")
		}
		e.set(func(e *engine) { e.away = false })
		if err := look(s, t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if want := []string{"dead", "reused", "later"}; !slices.Equal(e.removed, want) {
			t.Errorf("once it was reached again %v were removed, want %v", e.removed, want)
		}
	})
}

// TestReapingFails: a run takes place all the same.
func TestReapingFails(t *testing.T) {
	e := &engine{images: map[string]runtime.Image{"any": has("1")}, reapErr: errors.New("busy")}
	if err := look(prepareWith(t, e, nil), t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// stubborn is an engine with a dead bridge's container that takes until letGo is closed to be
// removed, or until the removal is given up.
type stubborn struct {
	*engine
	letGo chan struct{}
}

func (e stubborn) Remove(ctx context.Context, ids ...string) error {
	select {
	case <-e.letGo:
		return e.engine.Remove(ctx, ids...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestReapingIsNotWaitedFor: the first call doesn't; Close does, for a while.
func TestReapingIsNotWaitedFor(t *testing.T) {
	for _, gone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			dead := runtime.Self()
			dead.PID = 1<<22 + 1
			e := stubborn{&engine{images: map[string]runtime.Image{"any": has("1")},
				orphans: []runtime.Orphan{{ID: "dead", Owner: dead}}}, make(chan struct{})}
			cfg := config()
			cfg.Owner = runtime.Self()
			s, err := sandbox.New(e, cfg)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if err := look(s, t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took != 0 {
				t.Errorf("the first call waited %v for a container that isn't its own", took)
			}
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				s.Close()
			}()
			synctest.Wait()
			select {
			case <-closed:
				t.Error("Close didn't wait for the removal")
			default:
			}
			if gone {
				close(e.letGo)
			}
			<-closed
			took := time.Since(begun)
			if want := []string{"dead"}; gone && (took != 0 || !slices.Equal(e.removed, want)) {
				t.Errorf("Close took %v, and %v were removed", took, e.removed)
			}
			if !gone && took != 5*time.Second {
				t.Errorf("Close took %v for a removal that doesn't end; want 5 s", took)
			}
		})
	}
}
