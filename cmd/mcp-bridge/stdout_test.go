package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
)

// full takes nothing, as a disk without room.
type full struct{}

var errFull = errors.New("no room")

func (full) Write([]byte) (int, error) { return 0, errFull }

// gone is a pipe whose reader has left.
type gone struct{}

func (gone) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
}

// TestReaderHasGone: as of other programs, that is no fault to be told.
func TestReaderHasGone(t *testing.T) {
	for _, args := range []string{"version", "--help", "servers --json"} {
		t.Run(args, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			var stderr strings.Builder
			if code := run(strings.Fields(args), strings.NewReader(""), gone{}, &stderr); code != exit.Pipe ||
				stderr.Len() > 0 {
				t.Errorf("code %d, want %d; stderr:\n%s", code, exit.Pipe, stderr.String())
			}
		})
	}
}

// TestFullStdout: whatever a command prints, that it couldn't be written is said, and the command
// has failed.
func TestFullStdout(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_RUNTIME_DIR", home)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	t.Setenv("MCP_BRIDGE_RUNTIME", "unix://"+filepath.Join(home, "none.sock"))
	config := filepath.Join(home, "servers.json")
	must(t, os.WriteFile(config, []byte(`{"mcpServers": {"files": {"command": "mcp-server-files"}}}`), 0o600))
	t.Setenv("MCP_BRIDGE_CONFIG", config)
	for _, tc := range []struct {
		args string
		code int
	}{
		{"version", exit.Failed},
		{"--help", exit.Failed},
		{"serve --help", exit.Failed},
		{"servers", exit.Failed},
		{"servers --json", exit.Failed},
		{"tools --json files", exit.Failed},
		{"policy check", exit.Failed},
		{"policy test files.read", exit.Failed},
		{"policy list", exit.Failed},
		{"login --status", exit.Failed},
		{"doctor", exit.Unavailable}, // with a code of its own, which stays
	} {
		t.Run(tc.args, func(t *testing.T) {
			var stderr strings.Builder
			code := run(strings.Fields(tc.args), strings.NewReader(""), full{}, &stderr)
			if code != tc.code || !strings.Contains(stderr.String(),
				"standard output can't be written, and what is missing there is lost: no room\n") {
				t.Errorf("code %d, want %d; stderr:\n%s", code, tc.code, stderr.String())
			}
			if strings.Count(stderr.String(), errFull.Error()) > 1 {
				t.Errorf("it is said more than once:\n%s", stderr.String())
			}
		})
	}
}
