//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingIsStartedBeforeItIsNeeded: a bridge that has answered initialize and listed its tools has started no process, neither
// watchdog nor server, and has spoken to no engine; the first run starts the watchdog.
func TestNothingIsStartedBeforeItIsNeeded(t *testing.T) {
	cmd := command(t, map[string]entry{"shop": shop(t)})
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_RUNTIME=unix://"+filepath.Join(t.TempDir(), "no.sock"))
	c := serve(t, cmd)
	c.request("tools/list", map[string]any{})
	pid := cmd.Process.Pid
	if children := childrenOf(pid); len(children) > 0 {
		t.Errorf("it has started %v", children)
	}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("its descriptors can't be seen: %v", err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:") {
			t.Errorf("it has a socket: %s", fd)
		}
	}
	if r := c.python("print(1)", nil); !r.IsError {
		t.Errorf("got %+v from no engine", r)
	}
	watchdogOf(t, pid)
}
