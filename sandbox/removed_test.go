package sandbox_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestImageIsGone: a run whose image was removed or replaced since it was found has what there is
// now, or what is pulled.
func TestImageIsGone(t *testing.T) {
	for _, tt := range []struct {
		name, image, want string
		pulls             int
	}{
		{"replaced", "second", " second", 0},
		{"removed", "", " pulled", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(c *sandbox.Config) { c.Standby = 0 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
				call(t, s, "1ms")
				fl.set(func() { fl.image, fl.removed = tt.image, true })
				for range 2 {
					if r := call(t, s, "1ms"); !strings.HasSuffix(r.Stdout(), tt.want) {
						t.Errorf("ran in %q", r.Stdout())
					}
				}
				if fl.pulls != tt.pulls || fl.started() != 4 {
					t.Errorf("%d pulls and %d starts, want %d and 4: one of them in vain", fl.pulls, fl.started(), tt.pulls)
				}
			})
		})
	}
}

// TestImageIsGoneForGood: an engine that has an image and can't start anything from it is asked
// twice, not for ever.
func TestImageIsGoneForGood(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 0 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		fl.set(func() {
			fl.broken = func() error { return &runtime.ImageError{Ref: "any", Err: errors.New("no such image")} }
		})
		_, err := s.Run(t.Context(), sandbox.Request{Code: "1ms", Timeout: time.Minute}, hostFunc(echo))
		if !errors.As(err, new(*runtime.ImageError)) || fl.started() != 2 {
			t.Errorf("got %v after %d starts, want an *ImageError after 2", err, fl.started())
		}
	})
}
