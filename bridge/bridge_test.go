package bridge

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/bridge/fixture"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// asServer in the environment makes the test binary the fixture server.
const asServer = "BRIDGE_TEST_SERVE_FIXTURE"

// TestMain fails when a goroutine of this package is left.
func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		var exit *fixture.ExitError
		if errors.As(fixture.Serve(context.Background(), os.Stdin, os.Stdout), &exit) {
			os.Exit(exit.Code)
		}
		os.Exit(0)
	}
	flag.Parse()
	code := m.Run()
	if left := leaked(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leaked gives goroutines that a moment hasn't ended: the last ones of a test may still be on their
// way out.
func leaked() string {
	var left []string
	// between two looks
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(
		20 * time.Millisecond) {
		buf := make([]byte, 1<<20)
		buf = buf[:goruntime.Stack(buf, true)]
		left = nil
		for _, g := range strings.Split(string(buf), "\n\n") {
			if strings.Contains(g, "mcp-bridge/bridge.") && !strings.Contains(g, "bridge.TestMain") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return ""
		}
	}
	return strings.Join(left, "\n\n")
}

type fakeRunner struct {
	prepare func(ctx context.Context, p runtime.Progress) error
	run     func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error)
}

func (f fakeRunner) Run(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error) {
	if r.Queued != nil {
		r.Queued()
	}
	if f.prepare != nil {
		if err := f.prepare(ctx, r.Progress); err != nil {
			return sandbox.Result{}, err
		}
	}
	if r.Files != nil {
		files, err := r.Files()
		if err != nil {
			return sandbox.Result{}, err
		}
		r.Files = func() ([]sandbox.Input, error) { return files, nil }
	}
	if f.run == nil {
		return printed(r.Code), nil
	}
	return f.run(ctx, r, h)
}

// printed is the result of code that printed text and ended well.
func printed(text string) sandbox.Result {
	return sandbox.Result{Status: sandbox.StatusOK, Output: []sandbox.Chunk{{Stream: "stdout", Text: text}}}
}

type fakeUpstreams struct {
	tools map[string][]upstream.Tool
	call  func(ctx context.Context, server, tool string, args json.RawMessage) (json.RawMessage, error)
}

func (f fakeUpstreams) Tools(_ context.Context, server string) ([]upstream.Tool, error) {
	tools, ok := f.tools[server]
	if !ok {
		return nil, errors.New("starting it: exec: no such file")
	}
	return tools, nil
}

func (fakeUpstreams) Running(context.Context, string) bool { return false }

func (fakeUpstreams) Update([]discovery.Server) {}

func (fakeUpstreams) Pin(ctx context.Context) (context.Context, func()) { return ctx, func() {} }

func (f fakeUpstreams) Call(ctx context.Context, server, tool string, args json.RawMessage) (json.RawMessage,
	error) {
	if f.call == nil {
		return json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`,
			server+"."+tool+string(args))), nil
	}
	return f.call(ctx, server, tool, args)
}

// config is two usable servers and one that isn't.
func config() Config {
	return Config{
		Runner: fakeRunner{},
		Upstreams: fakeUpstreams{tools: map[string][]upstream.Tool{
			"github": {{Name: "list-issues", Description: "List issues.",
				InputSchema: json.RawMessage(`{"type":"object"}`)}, {Name: "list_issues"}, {Name: "me"}},
			"My Files!": {{Name: "read", OutputSchema: json.RawMessage(`{"type":"object"}`)}},
		}},
		Servers: []discovery.Server{
			{Name: "github", Command: "gh", Env: map[string]string{"TOKEN": "secret"},
				Description: "Issues and\npulls"},
			{Name: "My Files!", Command: "fs"},
			{Name: "broken", Command: "nothing"},
		},
		Problems: []discovery.Problem{{
			Source: discovery.Source{Host: "Cursor", Path: "/home/u/.cursor/mcp.json"}, Server: "linear",
			Reason: "remote servers are not supported yet", Next: "use its stdio variant",
		}},
		Timeout: 30 * time.Second, MaxTimeout: 120 * time.Second, Version: "1.2.3",
	}
}

func build(t testing.TB, change func(*Config)) *Bridge {
	t.Helper()
	cfg := config()
	if change != nil {
		change(&cfg)
	}
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// running builds a bridge whose runs are fn.
func running(t testing.TB, fn func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result,
	error)) *Bridge {
	return build(t, func(c *Config) { c.Runner = fakeRunner{run: fn} })
}

// frame is a message of the bridge.
type frame struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Token     json.RawMessage `json:"progressToken"`
		RequestID json.RawMessage
		Progress  float64
		Total     float64
		Message   string
	}
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	raw json.RawMessage // the parameters
}

type toolResult struct {
	Content []struct{ Type, Text, Data, MIMEType string }
	IsError bool
	Struct  json.RawMessage `json:"structuredContent"`
}

func (f frame) tool(t testing.TB) toolResult {
	t.Helper()
	var r toolResult
	if f.Error != nil {
		t.Fatalf("a JSON-RPC error %d: %s", f.Error.Code, f.Error.Message)
	}
	if err := json.Unmarshal(f.Result, &r); err != nil {
		t.Fatalf("%v in %s", err, f.Result)
	}
	return r
}

// peer is a client that sees every byte.
type peer struct {
	t      testing.TB
	in     *io.PipeWriter
	frames chan frame // closed when the bridge's side is
	served chan error
}

// connect serves b to a peer. The test ends with the connection.
func connect(t testing.TB, b *Bridge) *peer {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &peer{t: t, in: inW, frames: make(chan frame, 10000), served: make(chan error, 1)}
	go func() {
		p.served <- b.Serve(context.Background(), inR, outW)
		outW.Close()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.frames)
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			var f frame
			if err := json.Unmarshal(line, &f); err != nil {
				t.Errorf("a line that is no JSON: %q", line)
			}
			var params struct{ Params json.RawMessage }
			_ = json.Unmarshal(line, &params) // the same line
			f.raw = params.Params
			p.frames <- f
		}
	}()
	t.Cleanup(func() {
		inW.Close()
		<-read
	})
	return p
}

func (p *peer) send(format string, a ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", a...); err != nil {
		p.t.Fatal(err)
	}
}

// run sends a call of run_python; meta may be empty.
func (p *peer) run(id int, args, meta string) {
	p.t.Helper()
	if meta != "" {
		meta = `,"_meta":` + meta
	}
	p.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_python","arguments":%s%s}}`, id,
		args, meta)
}

func (p *peer) next() frame {
	p.t.Helper()
	select {
	case f, ok := <-p.frames:
		if !ok {
			p.t.Fatal("the bridge has hung up")
		}
		return f
	case <-time.After(20 * time.Second):
		p.t.Fatal("no message came")
	}
	panic("unreachable")
}

// call is one call and its text.
func (p *peer) call(args string) toolResult {
	p.t.Helper()
	p.run(1, args, "")
	return p.next().tool(p.t)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); rewrite it with -update:\n%s", name, diff)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no runner", func(c *Config) { c.Runner = nil }, "no runner"},
		{"no upstreams", func(c *Config) { c.Upstreams = nil }, "no upstreams"},
		{"no timeout", func(c *Config) { c.Timeout = 0 }, "must be positive"},
		{"timeout above the longest", func(c *Config) { c.Timeout = time.Hour }, "raise MCP_BRIDGE_MAX_TIMEOUT"},
		{"output mode", func(c *Config) { c.OutputMode = "toon" },
			`no output mode "toon": set MCP_BRIDGE_OUTPUT_MODE to text or structured`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := config()
			tc.change(&cfg)
			if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
