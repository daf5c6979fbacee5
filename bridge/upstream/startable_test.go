//go:build unix

package upstream

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestRefuse: a server that may not be started isn't, whatever is asked of it, and is once it may.
func TestRefuse(t *testing.T) {
	held := errors.New("it is held")
	var may atomic.Bool
	p := open(t, func(c *Config) {
		c.Refuse = func(s discovery.Server) error {
			if s.Name == "new" && !may.Load() {
				return held
			}
			return nil
		}
	}, named("new", "normal"), named("old", "normal"))
	var refused *ServerError
	if _, err := p.Call(t.Context(), "new", "echo", nil); !errors.Is(err, held) || !errors.As(err, &refused) {
		t.Errorf("a call: %v", err)
	}
	if _, err := p.Tools(t.Context(), "new"); !errors.Is(err, held) {
		t.Errorf("a list: %v", err)
	}
	if _, err := p.List(t.Context(), "new", Prompts); !errors.Is(err, held) {
		t.Errorf("a list of prompts: %v", err)
	}
	if h := p.Check(t.Context(), "new"); !errors.Is(h.Err, held) || !strings.Contains(h.Err.Error(), "new") {
		t.Errorf("a check: %v", h.Err)
	}
	if pid(t.Context(), t, p, "old") == 0 {
		t.Error("another one isn't started")
	}
	may.Store(true)
	if pid(t.Context(), t, p, "new") == 0 {
		t.Error("it isn't started now that it may be")
	}
}
