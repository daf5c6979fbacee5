package sandbox_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestReaper: containers of dead owners go within a minute, those of living ones never, whatever the clocks say; an engine that
// is away is left alone.
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
			t.Errorf("an engine that nobody has used was asked %d times", n)
		}
		if err := s.Prepare(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if want := []string{"dead", "reused"}; !slices.Equal(e.removed, want) {
			t.Errorf("at first contact %v were removed, want %v", e.removed, want)
		}
		later := dead
		later.Instance = "later"
		e.set(func(e *engine) { e.orphans = append(e.orphans, runtime.Orphan{ID: "later", Owner: later}) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"dead", "reused", "later"}; !slices.Equal(e.removed, want) {
			t.Errorf("after a minute %v were removed, want %v", e.removed, want)
		}
		asked := e.count("orphans")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := e.count("orphans") - asked; n != 10 {
			t.Errorf("in ten minutes it looked %d times", n)
		}

		logged := log.Len()
		e.set(func(e *engine) { e.resting = true })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := e.count("start"); n != 0 || log.Len() != logged {
			t.Errorf("an engine at rest was started %d times, and the log says %s", n, log.String()[logged:])
		}
		e.set(func(e *engine) { e.resting, e.away = false, true })
		if err := s.Prepare(t.Context(), nil); err == nil {
			t.Error("an engine that is away was prepared")
		}
		asked = e.count("orphans")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := e.count("orphans") - asked; n != 0 {
			t.Errorf("an engine that is known to be away was asked %d times", n)
		}
		s.Close()
		asked = e.count("orphans")
		time.Sleep(10 * time.Minute)
		if n := e.count("orphans") - asked; n != 0 {
			t.Errorf("after Close it looked %d times", n)
		}
	})
}

// TestReapingFails: a run takes place all the same.
func TestReapingFails(t *testing.T) {
	e := &engine{images: map[string]runtime.Image{"any": has("1")}, reapErr: errors.New("busy")}
	if err := prepareWith(t, e, nil).Prepare(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
