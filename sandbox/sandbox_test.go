package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestMain fails when goroutines outlive their owners.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		for deadline := time.Now().Add(30 * time.Second); ; goruntime.Gosched() {
			buf := make([]byte, 1<<20)
			stacks := string(buf[:goruntime.Stack(buf, true)])
			if !strings.Contains(stacks, "mcp-bridge/sandbox.") { // the tests' own package is another
				break
			}
			if time.Now().After(deadline) {
				fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", stacks)
				code = 1
				break
			}
		}
	}
	os.Exit(code)
}

func config() sandbox.Config {
	return sandbox.Config{
		Images:        []string{"any"},
		User:          "65534:65534",
		Limits:        runtime.Limits{Memory: 512 << 20, PIDs: 128, NoFile: 1024, Shm: 16 << 20},
		Owner:         runtime.Self(),
		OutputLimit:   256 << 10,
		ArtifactLimit: 1 << 20,
		MaxCalls:      1000,
		MaxRuns:       64,
		Queue:         256,
		QueueTimeout:  time.Hour,
		StartTimeout:  20 * time.Second,
		MaxTimeout:    2 * time.Minute,
		MaxContainers: 64,
	}
}

// newSandbox is over a plain subprocess: the frames are real, the walls aren't.
func newSandbox(t *testing.T, change func(*sandbox.Config)) *sandbox.Sandbox {
	t.Helper()
	cfg := config()
	if change != nil {
		change(&cfg)
	}
	s, err := sandbox.New(runtimetest.Local{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

type hostFunc func(context.Context, sandbox.Call) (json.RawMessage, error)

func (f hostFunc) Call(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
	return f(ctx, c)
}

// echo answers with its input as text.
func echo(_ context.Context, c sandbox.Call) (json.RawMessage, error) {
	var in struct{ Text string }
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": in.Text}}})
}

func shop(names ...string) []entrypoint.Provider {
	p := entrypoint.Provider{Name: "shop", Alias: "shop", Tools: map[string]entrypoint.Tool{}}
	for _, n := range names {
		p.Tools[n] = entrypoint.Tool{SafeName: n, OriginalName: n,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}
	}
	return []entrypoint.Provider{p}
}

func TestOutcomes(t *testing.T) {
	tests := []struct {
		name, code string
		timeout    time.Duration
		want       sandbox.Status
		exit       int
		signal     int
		stdout     string
		errType    string
		line       int
	}{
		{name: "printed", code: "print('hi')", want: sandbox.StatusOK, stdout: "hi\n"},
		{name: "nothing", code: "", want: sandbox.StatusOK},
		{name: "exit 0", code: "import sys; print('a'); sys.exit(0)", want: sandbox.StatusOK, stdout: "a\n"},
		{name: "exit 3", code: "import sys; print('a'); sys.exit(3)", want: sandbox.StatusExit, exit: 3,
			stdout: "a\n"},
		{name: "os._exit 3", code: "import os; print('a', flush=True); os._exit(3)", want: sandbox.StatusExit,
			exit: 3, stdout: "a\n"},
		{name: "os._exit 0", code: "import os; os._exit(0)", want: sandbox.StatusOK},
		{name: "exception", code: "print('a')\n1/0", want: sandbox.StatusError, exit: 1, stdout: "a\n",
			errType: "ZeroDivisionError", line: 2},
		{name: "exception, then 0", code: "import atexit, os\natexit.register(lambda: os._exit(0))\n1/0",
			want: sandbox.StatusError, errType: "ZeroDivisionError", line: 3},
		{name: "syntax error", code: "print('a')\ndef", want: sandbox.StatusError, exit: 1, errType: "SyntaxError",
			line: 2},
		{name: "segfault", code: "print('a', flush=True)\nimport ctypes; ctypes.string_at(0)",
			want: sandbox.StatusExit, exit: 139, signal: 11, stdout: "a\n"},
		{name: "killed by itself", code: "import os,signal; os.kill(os.getpid(), signal.SIGKILL)",
			want: sandbox.StatusExit, exit: 137, signal: 9},
		{name: "aborted", code: "import os; os.abort()", want: sandbox.StatusExit, exit: 134, signal: 6},
		{name: "timeout", code: "print('before', flush=True)\nwhile True: pass", timeout: time.Second,
			want: sandbox.StatusTimeout, stdout: "before\n"},
		{name: "timeout asleep", code: "import time; print('before'); time.sleep(60)", timeout: time.Second,
			want: sandbox.StatusTimeout, stdout: "before\n"},
		{name: "memory error", code: "print('a')\nx = bytearray(2 << 30)", want: sandbox.StatusMemoryLimit,
			stdout: "a\n", exit: 1},
		{name: "top-level await", code: "import asyncio\nawait asyncio.sleep(0)\nprint('hi')",
			want: sandbox.StatusOK, stdout: "hi\n"},
		{name: "child's output", code: "import os; _ = os.system('echo 123')", want: sandbox.StatusOK,
			stdout: "123\n"},
		{name: "forged done", code: `print('{"type":"done","id":"x","ok":true}')`, want: sandbox.StatusOK,
			stdout: `{"type":"done","id":"x","ok":true}` + "\n"},
	}
	s := newSandbox(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.timeout == 0 {
				tt.timeout = 20 * time.Second
			}
			r, err := s.Run(t.Context(), sandbox.Request{Code: tt.code, Timeout: tt.timeout}, hostFunc(echo))
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != tt.want || r.Stdout() != tt.stdout {
				t.Errorf("got %s, stdout %q (stderr %q, %q), want %s, %q", r.Status, r.Stdout(), r.Stderr(), r.Message,
					tt.want, tt.stdout)
			}
			if tt.want == sandbox.StatusExit && (r.ExitCode != tt.exit || r.Signal != tt.signal) {
				t.Errorf("got exit code %d, signal %d, want %d, %d", r.ExitCode, r.Signal, tt.exit, tt.signal)
			}
			if tt.errType != "" && (r.Error == nil || r.Error.Type != tt.errType || r.Error.Line != tt.line) {
				t.Errorf("got error %+v, want %s in line %d", r.Error, tt.errType, tt.line)
			}
			if (r.Status == sandbox.StatusOK) != (r.Message == "") {
				t.Errorf("status %s has the message %q", r.Status, r.Message)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	s := newSandbox(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := s.Run(ctx, sandbox.Request{
		// print writes the end of the line apart
		Code: "import sys\nsys.stdout.write('up\\n')\nwhile True: pass", Timeout: time.Minute,
		Output: func(sandbox.Chunk) { cancel() },
	}, hostFunc(echo))
	if err != nil || r.Status != sandbox.StatusCancelled || r.Stdout() != "up\n" {
		t.Errorf("got %+v, %v; want it cancelled, with what it printed", r, err)
	}
}

func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := newSandbox(t, nil).Run(ctx, sandbox.Request{Code: "1", Timeout: time.Minute}, hostFunc(echo))
	if err != nil || r.Status != sandbox.StatusCancelled || r.ExitCode != -1 {
		t.Errorf("got %+v, %v; want it cancelled, with no code's status", r, err)
	}
}

func TestCalls(t *testing.T) {
	tests := []struct {
		name, code, want string
		host             hostFunc
	}{
		{"one", "print(mcp_shop.echo(text='a'))", "a\n", echo},
		{"by real name", "print(mcp_servers['shop']['echo'](text='a'))", "a\n", echo},
		{"awaited", "print(await mcp_shop.echo(text='a'))", "a\n", echo},
		{"gathered", "import asyncio\nr = await asyncio.gather(*(mcp_shop.echo(text=str(i)) for i in " +
			"range(50)))\nprint(r == [str(i) for i in range(50)])", "True\n", echo},
		{"failing", "try: mcp_shop.echo(text='a')\nexcept Exception as e: print(type(e).__name__, e.code, e)",
			"ToolError denied no\n",
			func(context.Context, sandbox.Call) (json.RawMessage, error) {
				return nil, &entrypoint.CallError{Code: entrypoint.CodeDenied, Message: "no"}
			}},
		{"too long a result", "try: mcp_shop.echo(text='a')\nexcept Exception as e: print(e.code)",
			"output_limit\n",
			func(context.Context, sandbox.Call) (json.RawMessage, error) {
				return json.Marshal(strings.Repeat("x", entrypoint.MaxFrame))
			}},
		{"ten megabytes", "print(len(mcp_shop.echo(text='a')))", "10000000\n",
			func(context.Context, sandbox.Call) (json.RawMessage, error) {
				return echo(context.Background(), sandbox.Call{Input: json.RawMessage(`{"text":"` + strings.Repeat("x",
					10_000_000) + `"}`)})
			}},
	}
	s := newSandbox(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := s.Run(t.Context(), sandbox.Request{Code: tt.code, Timeout: 20 * time.Second,
				Providers: shop("echo")}, tt.host)
			if err != nil || r.Stdout() != tt.want {
				t.Errorf("got %q, %s %s %+v, %v; want %q", r.Stdout(), r.Status, r.Message, r.Error, err, tt.want)
			}
		})
	}
}

// TestCallsAreConcurrent: all fifty are under way before the first is answered.
func TestCallsAreConcurrent(t *testing.T) {
	var waiting atomic.Int32
	all := make(chan struct{})
	host := hostFunc(func(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
		if waiting.Add(1) == 50 {
			close(all)
		}
		select {
		case <-all:
			return echo(ctx, c)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	r, err := newSandbox(t, nil).Run(t.Context(), sandbox.Request{
		Code:    "import asyncio\nprint(len(await asyncio.gather(*(mcp_shop.echo(text='a') for _ in range(50)))))",
		Timeout: 20 * time.Second, Providers: shop("echo"),
	}, host)
	if err != nil || r.Stdout() != "50\n" {
		t.Errorf("got %q, %s, %v", r.Stdout(), r.Status, err)
	}
}

// TestCallOutlivesNoRun: a call that never ends is told when its run is over.
func TestCallOutlivesNoRun(t *testing.T) {
	told := make(chan struct{})
	host := hostFunc(func(ctx context.Context, _ sandbox.Call) (json.RawMessage, error) {
		<-ctx.Done()
		close(told)
		return nil, ctx.Err()
	})
	r, err := newSandbox(t, nil).Run(t.Context(), sandbox.Request{Code: "mcp_shop.echo(text='a')",
		Timeout: time.Second, Providers: shop("echo")}, host)
	if err != nil || r.Status != sandbox.StatusTimeout {
		t.Errorf("got %+v, %v", r, err)
	}
	<-told
}

func TestCallLimit(t *testing.T) {
	s := newSandbox(t, func(c *sandbox.Config) { c.MaxCalls = 3 })
	r, err := s.Run(t.Context(), sandbox.Request{
		Code: "for i in range(5):\n  try: print(mcp_shop.echo(text=str(i)))\n  except Exception as e: " +
			"print(e.code)",
		Timeout: 20 * time.Second, Providers: shop("echo"),
	}, hostFunc(echo))
	if want := "0\n1\n2\ncall_limit\ncall_limit\n"; err != nil || r.Stdout() != want {
		t.Errorf("got %q, %v; want %q", r.Stdout(), err, want)
	}
}

func TestOutputIsCutInTheMiddle(t *testing.T) {
	s := newSandbox(t, func(c *sandbox.Config) { c.OutputLimit = 2000 })
	r, err := s.Run(t.Context(), sandbox.Request{Code: "print('first')\nfor i in range(100000): print('x' * " +
		"50)\nprint('last')", Timeout: 20 * time.Second}, hostFunc(echo))
	if err != nil {
		t.Fatal(err)
	}
	out := r.Stdout()
	total := int64(len("first\n") + 100000*51 + len("last\n"))
	if !strings.HasPrefix(out, "first\n") || !strings.HasSuffix(out, "last\n") {
		t.Errorf("got %.60q ... %.60q", out, out[max(0, len(out)-60):])
	}
	if kept := int64(len(out)); kept+r.Truncated.Stdout != total || kept > 2000 {
		t.Errorf("%d kept and %d cut, of %d", kept, r.Truncated.Stdout, total)
	}
	at := 0
	for _, c := range r.Output {
		if c.Lost > 0 {
			break
		}
		at += len(c.Text)
	}
	if at < 950 || at > 1000 {
		t.Errorf("the gap is %d bytes behind the beginning of %d that are kept", at, len(out))
	}
}

func TestTwentyAtOnce(t *testing.T) {
	s := newSandbox(t, nil)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			want := fmt.Sprintf("run %d\n", i)
			r, err := s.Run(t.Context(), sandbox.Request{
				Code: fmt.Sprintf("print('run', mcp_shop.echo(text='%d'))", i), Timeout: time.Minute,
				Providers: shop("echo"),
			}, hostFunc(echo))
			if err != nil || r.Stdout() != want {
				t.Errorf("got %q, %s, %v; want %q", r.Stdout(), r.Status, err, want)
			}
		})
	}
	wg.Wait()
}

func TestRefused(t *testing.T) {
	s := newSandbox(t, nil)
	for name, r := range map[string]sandbox.Request{
		"no timeout":       {Code: "1"},
		"too long":         {Code: "1", Timeout: time.Hour},
		"too much code":    {Code: strings.Repeat("#", 5<<20), Timeout: time.Second},
		"negative timeout": {Code: "1", Timeout: -1},
	} {
		if _, err := s.Run(t.Context(), r, hostFunc(echo)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s.Close()
	if _, err := s.Run(t.Context(), sandbox.Request{Code: "1", Timeout: time.Second},
		hostFunc(echo)); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestMissingImage(t *testing.T) {
	s := newSandbox(t, func(c *sandbox.Config) { c.Images = []string{"missing"} })
	_, err := s.Run(t.Context(), sandbox.Request{Code: "1", Timeout: time.Second}, hostFunc(echo))
	var missing *runtime.ImageError
	if !errors.As(err, &missing) {
		t.Errorf("got %v, want an *ImageError", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(*sandbox.Config){
		"no image":        func(c *sandbox.Config) { c.Images = nil },
		"root":            func(c *sandbox.Config) { c.User = "0:0" },
		"no memory limit": func(c *sandbox.Config) { c.Limits.Memory = 0 },
		"no output limit": func(c *sandbox.Config) { c.OutputLimit = 0 },
		"no call limit":   func(c *sandbox.Config) { c.MaxCalls = 0 },
	} {
		cfg := config()
		change(&cfg)
		if _, err := sandbox.New(runtimetest.Local{}, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
