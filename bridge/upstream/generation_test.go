//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// named is a fake server under another name.
func named(name, mode string, args ...string) discovery.Server {
	s := fake(mode, args...)
	s.Name = name
	return s
}

// pid is the process of the server that a call under ctx reaches.
func pid(ctx context.Context, t *testing.T, p *Pool, server string) int {
	t.Helper()
	raw, err := p.Call(ctx, server, "seen", nil)
	if err != nil {
		t.Fatal(err)
	}
	var s seen
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s.PID
}

func TestUpdate(t *testing.T) {
	p := open(t, nil, named("same", "normal"), named("changed", "normal"), named("gone", "normal"))
	before := map[string]int{}
	for _, name := range []string{"same", "changed", "gone"} {
		before[name] = pid(t.Context(), t, p, name)
	}
	moved := named("same", "normal")
	moved.Source.Path = "/another/file.json"
	p.Update([]discovery.Server{moved, named("changed", "normal", "more"), named("new", "normal")})

	if pid(t.Context(), t, p, "same") != before["same"] {
		t.Error("a server that is configured as before was started again")
	}
	if pid(t.Context(), t, p, "changed") == before["changed"] {
		t.Error("a server whose configuration has changed was not started again")
	}
	if _, err := p.Call(t.Context(), "gone", "echo", nil); !errors.Is(err, ErrUnknownServer) {
		t.Errorf("a server that is gone: got %v", err)
	}
	if pid(t.Context(), t, p, "new") == 0 {
		t.Error("a new server can't be called")
	}
	vanished(t, before["changed"])
	vanished(t, before["gone"])
}

// What has pinned the servers goes on with them, calls under way and those still to come; the rest
// is closed with the last pin.
func TestUpdateWhilePinned(t *testing.T) {
	p := open(t, nil, named("changed", "normal"), named("gone", "normal"), named("unused", "normal"))
	first, releaseFirst := p.Pin(t.Context())
	second, releaseSecond := p.Pin(t.Context())
	nested, releaseNested := p.Pin(first)
	changed, gone := pid(first, t, p, "changed"), pid(first, t, p, "gone")

	p.Update([]discovery.Server{named("changed", "normal", "more")})
	p.Update([]discovery.Server{named("changed", "normal", "even more")})
	if pid(t.Context(), t, p, "changed") == changed {
		t.Error("a call without a pin went to the old server")
	}
	releaseNested() // it was no pin of its own
	releaseFirst()
	releaseFirst() // counts once
	if pid(second, t, p, "changed") != changed || pid(second, t, p, "gone") != gone ||
		pid(nested, t, p, "gone") != gone {
		t.Error("a pinned call went to another server")
	}
	if pid(second, t, p, "unused") == 0 { // started only now
		t.Error("a server that is gone can't be started by who has it pinned")
	}
	releaseSecond()
	vanished(t, changed)
	vanished(t, gone)
	if n := len(p.current.entries); n != 1 {
		t.Errorf("%d servers are configured, want 1", n)
	}
}

func TestUpdateAfterClose(t *testing.T) {
	p := open(t, nil, fake("normal"))
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	p.Update([]discovery.Server{named("new", "normal")})
	if _, err := p.Call(t.Context(), "new", "echo", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// Close ends what only an old pin still holds.
func TestCloseEndsOldServers(t *testing.T) {
	p := open(t, nil, named("gone", "normal"))
	ctx, release := p.Pin(t.Context())
	defer release()
	old := pid(ctx, t, p, "gone")
	p.Update(nil)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	vanished(t, old)
}

func TestUpdatesAndCallsAtOnce(t *testing.T) {
	p := open(t, nil, fake("normal", "0"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				if _, err := p.Call(t.Context(), "fake", "echo", nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 6 {
		p.Update([]discovery.Server{fake("normal", string(rune('1'+i)))})
	}
	all.Wait()
}

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
