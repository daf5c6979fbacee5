package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asMain) != "" && os.Getenv(asOpen) == "", len(os.Args) == 2 && os.Args[1] == watchdogName: // whose environment isn't ours
		main()
	case os.Getenv(asScript) != "":
		if err := fixture.ServeScript(context.Background(), os.Stdin, os.Stdout, []byte(os.Getenv(asScript))); err != nil {
			log.Fatal(err)
		}
		os.Exit(0)
	case os.Getenv(asOpen) != "":
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case os.Getenv(asClient) != "":
		os.Exit(clientMain())
	}
	testscript.Main(m, map[string]func(){"mcp-bridge": main})
}

// needEngine skips where there is no engine to test against. With MCP_BRIDGE_TEST_RUNTIME=podman its absence is a failure.
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

// anyEngine is for tests that run with each engine of test/engines/with-engine. It returns the engine's name, which is also its
// command line's.
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
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// entry is a server in a configuration file.
type entry struct {
	Command string            `json:"command"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// shop is the demo server of this very binary.
func shop(t *testing.T) entry {
	return entry{Command: self(t), Args: []string{"demo-server"}, Env: map[string]string{asMain: "1"}}
}

// configure writes a configuration file and returns its path.
func configure(t *testing.T, servers map[string]entry) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// command is the real program with a configuration.
func command(t *testing.T, servers map[string]entry, args ...string) *exec.Cmd {
	cmd := exec.Command(self(t), args...)
	cmd.Env = append(os.Environ(), asMain+"=1", "MCP_BRIDGE_CONFIG="+configure(t, servers), "XDG_STATE_HOME="+t.TempDir())
	if _, chosen := os.LookupEnv("MCP_BRIDGE_RUNTIME"); !chosen {
		cmd.Env = append(cmd.Env, "MCP_BRIDGE_RUNTIME="+os.Getenv("MCP_BRIDGE_TEST_RUNTIME")) // and not what else is installed
	}
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") == "" { // else what is known of the image is kept for the next test
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+t.TempDir())
	}
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_ARTIFACTS="+filepath.Join(t.TempDir(), "artifacts"))
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// logFile is a file for what a process says on stderr. The end of it is printed if the test fails: of the logs of all processes
// of all tests together nobody would read it out. It is a file, so that a process which outlives the test keeps nothing waiting.
func logFile(t *testing.T) *os.File {
	t.Helper()
	const most = 8 << 10
	f, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
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

// client talks to a bridge over its pipes.
type client struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser

	killed bool // by the test, which has waited for it

	mu      sync.Mutex
	next    int
	waiting map[string]chan message
	notes   chan message // notifications; dropped when nobody takes them
	ended   chan struct{}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// serve starts a bridge and initializes it. It is ended with the test, and must then be gone with a code of 0.
func serve(t *testing.T, cmd *exec.Cmd) *client {
	t.Helper()
	return serveTo(t, cmd, map[string]any{})
}

// serveTo is serve for a client with capabilities.
func serveTo(t *testing.T, cmd *exec.Cmd, capabilities map[string]any) *client {
	t.Helper()
	c := &client{t: t, cmd: cmd, waiting: map[string]chan message{}, notes: make(chan message, 1000), ended: make(chan struct{})}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if cmd.Stderr == nil {
		cmd.Stderr = logFile(t)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read(stdout)
	t.Cleanup(c.close)
	c.request("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": map[string]any{"name": "test", "version": "0"}})
	c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return c
}

func (c *client) close() {
	c.stdin.Close()
	<-c.ended
	if c.killed {
		return
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("the bridge ended with %v", err)
	}
}

func (c *client) read(r io.Reader) {
	defer close(c.ended)
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			c.t.Errorf("the bridge wrote what is no message: %.200s", line)
			return
		}
		if m.Method != "" {
			select {
			case c.notes <- m:
			default:
			}
			continue
		}
		c.mu.Lock()
		ch := c.waiting[string(m.ID)]
		delete(c.waiting, string(m.ID))
		c.mu.Unlock()
		if ch != nil {
			ch <- m
		}
	}
}

func (c *client) send(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.stdin.Write(append(b, '\n')); err != nil {
		c.t.Error(err)
	}
}

// start sends a request and returns where its answer comes.
func (c *client) start(method string, params any) (id int, answer <-chan message) {
	ch := make(chan message, 1)
	c.mu.Lock()
	c.next++
	id = c.next
	c.waiting[fmt.Sprint(id)] = ch
	c.mu.Unlock()
	c.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id, ch
}

func (c *client) request(method string, params any) message {
	c.t.Helper()
	_, answer := c.start(method, params)
	select {
	case m := <-answer:
		return m
	case <-c.ended:
		c.t.Errorf("the bridge ended before it answered %s", method)
		return message{}
	}
}

// answer is a tool result as a host sees it.
type answer struct {
	Text    string
	IsError bool
}

func parseAnswer(t *testing.T, m message) answer {
	t.Helper()
	var r struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	if m.Error != nil {
		t.Errorf("JSON-RPC error %d: %s", m.Error.Code, m.Error.Message)
		return answer{}
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		t.Errorf("%v in %.200s", err, m.Result)
	}
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.Text)
	}
	return answer{b.String(), r.IsError}
}

// python calls run_python.
func (c *client) python(code string, more map[string]any) answer {
	c.t.Helper()
	args := map[string]any{"code": code}
	for k, v := range more {
		args[k] = v
	}
	return parseAnswer(c.t, c.request("tools/call", map[string]any{"name": "run_python", "arguments": args}))
}

// startLong starts a run that would last for a hundred seconds, and returns once its code has printed "up".
func (c *client) startLong() (id int, answer <-chan message) {
	c.t.Helper()
	token := rand.Text() // reports of an earlier run may still be there
	id, answer = c.start("tools/call", map[string]any{
		"name":      "run_python",
		"arguments": map[string]any{"code": "print('up', flush=True)\nimport time; time.sleep(100)", "servers": []string{}, "timeout": 120},
		"_meta":     map[string]any{"progressToken": token},
	})
	for {
		select {
		case m := <-c.notes:
			if strings.Contains(string(m.Params), token) && strings.Contains(string(m.Params), "up") {
				return id, answer
			}
		case m := <-answer:
			c.t.Fatalf("the run ended at once: %s", m.Result)
		}
	}
}
