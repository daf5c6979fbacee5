package sandbox_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// curious is an engine that notes, when its container's input has ended, whether anybody needs to
// know how the container ended.
type curious struct {
	scripted
	needed chan bool
}

func (c curious) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	exit, err := c.scripted.Run(ctx, spec, std)
	if !isCompiler(spec) {
		_, _ = io.Copy(io.Discard, std.Stdin)
		c.needed <- std.NeedsExit()
	}
	return exit, err
}

// TestEndIsAskedFor: an engine is asked how a container ended only where something has killed the
// code that the engine may know of.
func TestEndIsAskedFor(t *testing.T) {
	done := func(wait string) string {
		return `{"type":"done","id":"r","ok":true,"durationMs":1,"wait":` + wait + `}`
	}
	for _, tt := range []struct {
		name, after string
		needed      bool
	}{
		{"the code exited", done(`{"exited":true,"status":3}`), false},
		{"something killed the code", done(`{"exited":false,"status":0,"signal":9}`), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := curious{scripted{before: ready, after: tt.after}, make(chan bool, 1)}
			s, err := sandbox.New(e, config())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: time.Minute},
				hostFunc(echo)); err != nil {
				t.Fatal(err)
			}
			if needed := <-e.needed; needed != tt.needed {
				t.Errorf("the engine is to find out how it ended: %v, want %v", needed, tt.needed)
			}
		})
	}
}
