package main

import (
	"context"
	"encoding/json"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-bridge/mcp-bridge/bridge/fixture"
)

// Variables that make the test binary another program.
const (
	asMain   = "MCP_BRIDGE_TEST_MAIN"   // the real one
	asClient = "MCP_BRIDGE_TEST_CLIENT" // an MCP client with the real one as its server
	asScript = "MCP_BRIDGE_TEST_SCRIPT" // an MCP server that plays the script that this holds
	asOpen   = "MCP_BRIDGE_TEST_OPEN"   // the real one, into which a test can look by /proc

	asRecorder = "MCP_BRIDGE_TEST_RECORDER" // another MCP server, whose lines are recorded
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asMain) != "" && os.Getenv(asOpen) == "", len(os.Args) == 2 &&
		os.Args[1] == watchdogName: // whose environment isn't ours
		main()
	case os.Getenv(asScript) != "":
		if err := fixture.ServeScript(context.Background(), os.Stdin, os.Stdout,
			[]byte(os.Getenv(asScript))); err != nil {
			log.Fatal(err)
		}
		os.Exit(0)
	case os.Getenv(asRecorder) != "":
		os.Exit(recordMain(os.Getenv(asRecorder)))
	case os.Getenv(asOpen) != "":
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case os.Getenv(asClient) != "":
		os.Exit(clientMain())
	}
	testscript.Main(m, map[string]func(){"mcp-bridge": main})
}

// must ends the test where a step that it only needs has failed.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holds reports each part that a text lacks.
func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, want := range parts {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// needEngine skips where there is no engine to test against. With MCP_BRIDGE_TEST_RUNTIME=podman
// its absence is a failure.
func needEngine(t *testing.T) {
	t.Helper()
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "podman" {
		t.Skip("MCP_BRIDGE_TEST_RUNTIME is not podman: no engine to test against")
	}
}

// needTime skips a test that takes long where only the main job is to be shown: see make test.
func needTime(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long; make test-all runs it")
	}
}

// anyEngine is for tests that run with each engine of test/engines/with-engine. It returns the
// engine's name, which is also its command line's.
func anyEngine(t *testing.T) string {
	t.Helper()
	name := os.Getenv("MCP_BRIDGE_TEST_RUNTIME")
	if name == "" {
		t.Skip("MCP_BRIDGE_TEST_RUNTIME names no engine to test against")
	}
	return name
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	return exe
}

// entry is a server in a configuration file.
type entry struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Isolate bool              `json:"isolate,omitempty"`
}

// shop is the demo server of this very binary.
func shop(t *testing.T) entry {
	return entry{Command: self(t), Args: []string{"demo-server"}, Env: map[string]string{asMain: "1"}}
}

// configure writes a configuration file and returns its path.
func configure(t *testing.T, servers map[string]entry) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"mcpServers": servers})
	must(t, err)
	path := filepath.Join(t.TempDir(), "servers.json")
	must(t, os.WriteFile(path, b, 0o600))
	return path
}

// command is the real program with a configuration, whose code has no packages unless it asks for
// them: the environment data may have been built on this machine.
func command(t *testing.T, servers map[string]entry, args ...string) *exec.Cmd {
	cmd := exec.Command(self(t), args...)
	cmd.Env = append(os.Environ(), asMain+"=1", "MCP_BRIDGE_CONFIG="+configure(t, servers),
		"XDG_STATE_HOME="+t.TempDir(), "MCP_BRIDGE_ENV=base")
	if _, chosen := os.LookupEnv("MCP_BRIDGE_RUNTIME"); !chosen {
		// and not what else is installed
		cmd.Env = append(cmd.Env, "MCP_BRIDGE_RUNTIME="+os.Getenv("MCP_BRIDGE_TEST_RUNTIME"))
	}
	byURL := slices.ContainsFunc(slices.Collect(maps.Values(servers)), func(e entry) bool { return e.URL != "" })
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") == "" || byURL {
		// Else what is known of the image is kept for the next test; and so would be the tools of a
		// server, by its URL, whose port may be given to another.
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+t.TempDir())
	}
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_ARTIFACTS="+filepath.Join(t.TempDir(), "artifacts"))
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// with returns the command with more variables.
func with(cmd *exec.Cmd, vars ...string) *exec.Cmd {
	cmd.Env = append(cmd.Env, vars...)
	return cmd
}

// logFile is a file for what a process says on stderr, whose end is printed if the test fails. It
// is a file, so that a process which outlives the test keeps nothing waiting.
func logFile(t *testing.T) *os.File {
	t.Helper()
	const most = 8 << 10
	f, err := os.CreateTemp(t.TempDir(), "stderr")
	must(t, err)
	t.Cleanup(func() {
		defer f.Close()
		if !t.Failed() {
			return
		}
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Error(err)
		}
		t.Logf("stderr, its end:\n%s", data[max(0, len(data)-most):])
	})
	return f
}

// pythonServer is the beginning of an MCP server in Python: serve answers until the input ends.
const pythonServer = `
import json, sys

def serve(tool, call=lambda: {"content": []}, before_list=lambda: None):
    for line in sys.stdin:
        m = json.loads(line)
        if m.get("method") == "initialize":
            r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                 "serverInfo": {"name": "python", "version": "0"}}
        elif m.get("method") == "tools/list":
            before_list()
            r = {"tools": [{"name": tool, "inputSchema": {"type": "object"}}]}
        elif m.get("method") == "tools/call":
            r = call()
        else:
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)

`
