package sandbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// mortal is an engine that is gone for the first runs, before any code of theirs runs.
type mortal struct {
	scripted
	deaths *atomic.Int64
	runs   *atomic.Int64
}

func (m mortal) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	m.runs.Add(1)
	if m.deaths.Add(-1) >= 0 {
		return runtime.Exit{}, &runtime.UnavailableError{Engine: "fake", Err: errors.New("it went away"),
			Gone: true}
	}
	return m.scripted.Run(ctx, spec, std)
}

// TestEngineGoneBeforeTheCode holds that a run begins again, once, where its engine was gone before
// any code ran, and never later.
func TestEngineGoneBeforeTheCode(t *testing.T) {
	done := output + "\n" + `{"type":"done","id":"r","ok":true,"durationMs":1,"wait":{"exited":true,"status":0}}`
	for _, tt := range []struct {
		name   string
		engine scripted
		deaths int64
		want   sandbox.Status
		runs   int64
	}{
		{"once", scripted{before: ready, after: done}, 1, sandbox.StatusOK, 2},
		{"twice", scripted{before: ready, after: done}, 2, "", 2},
		{"while the code runs", scripted{before: ready, after: output,
			err: &runtime.UnavailableError{Err: errors.New("it went away"), Gone: true}}, 0, sandbox.StatusEngine, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var deaths, runs atomic.Int64
			s, err := sandbox.New(mortal{tt.engine, &deaths, &runs}, config())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := look(s, t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			deaths.Store(tt.deaths)
			runs.Store(0)
			r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: time.Minute}, hostFunc(echo))
			if (err != nil) != (tt.want == "") || r.Status != tt.want || runs.Load() != tt.runs {
				t.Errorf("got %q, %v after %d containers; want %q and %d", r.Status, err, runs.Load(), tt.want, tt.runs)
			}
		})
	}
}
