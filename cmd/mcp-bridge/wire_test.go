package main

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
)

// TestPurpose: what depends on it is a server's alone, or a listener's alone.
func TestPurpose(t *testing.T) {
	cfg := settings.Settings{Sandboxes: 5, MaxConcurrent: 3, Replica: "a"}
	for what, want := range map[purpose]struct {
		kept, together int
		replica        bridge.Replica
	}{once: {0, 3, ""}, serving: {5, 8, ""}, listening: {5, 8, "a"}} {
		p := &parts{cfg: cfg}
		kept, all, name := p.most(what), p.sandboxConfig(what).MaxContainers, what.replica(cfg)
		if kept != want.kept || all != want.together || name != want.replica {
			t.Errorf("%d: %d sandboxes, %d containers, %q; want %v", what, kept, all, name, want)
		}
	}
}

// TestUpstreamTimeouts: 0 means never.
func TestUpstreamTimeouts(t *testing.T) {
	t.Setenv("MCP_BRIDGE_UPSTREAM_IDLE_TIMEOUT", "0")
	t.Setenv("MCP_BRIDGE_UPSTREAM_START_TIMEOUT", "7")
	cfg, err := settings.Read()
	must(t, err)
	if c := (&parts{cfg: cfg}).poolConfig(); c.IdleTimeout < 1<<62 || c.StartTimeout != 7*time.Second {
		t.Errorf("idle after %v, started within %v; want never and 7s", c.IdleTimeout, c.StartTimeout)
	}
}

// TestBoundGarbage: garbage has a bound, and the user's own is left alone. What comes of it shows
// TestHostileSuite.
func TestBoundGarbage(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	for _, tt := range []struct {
		setting string
		want    int64
	}{
		{"", softMemory},
		{"4GiB", 4 << 30},
		{"off", 4 << 30},
	} {
		t.Setenv("GOMEMLIMIT", tt.setting)
		debug.SetMemoryLimit(4 << 30) // as the runtime would, at its start
		boundGarbage()
		if got := debug.SetMemoryLimit(-1); got != tt.want {
			t.Errorf("GOMEMLIMIT=%q: got %d, want %d", tt.setting, got, tt.want)
		}
	}
}
