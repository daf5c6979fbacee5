package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
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

// The 24 points of the execbox runner specification, over the real guest as a plain process.
// entrypoint/PROTOCOL.md says of each whether it is kept, extended or deliberately different; what
// a transcript holds isn't said again here.

// recorder is an engine that keeps the frames of both directions.
type recorder struct {
	runtimetest.Local
	mu   sync.Mutex
	runs []*recording
}

type recording struct{ host, guest bytes.Buffer }

func (r *recorder) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if isCompiler(spec) {
		return runtime.Exit{Code: 1}, nil // nothing is compiled ahead
	}
	rec := new(recording)
	r.mu.Lock()
	r.runs = append(r.runs, rec)
	r.mu.Unlock()
	std.Stdin = io.TeeReader(std.Stdin, &rec.host)
	std.Stdout = io.MultiWriter(&rec.guest, std.Stdout)
	return r.Local.Run(ctx, spec, std)
}

// fromGuest are the guest's frames of a run that is over.
func (r *recording) fromGuest(t *testing.T) []entrypoint.FromGuest {
	t.Helper()
	var all []entrypoint.FromGuest
	for in := entrypoint.NewReader(&r.guest, 0); ; {
		f, err := in.Read()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
}

// play runs code and gives, beside the result, what the guest sent.
func play(t *testing.T, req sandbox.Request, host hostFunc) (sandbox.Result, []entrypoint.FromGuest) {
	t.Helper()
	rec := new(recorder)
	s, err := sandbox.New(rec, config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if req.Timeout == 0 {
		req.Timeout = 20 * time.Second
	}
	req.ID = "r"
	got, err := s.Run(t.Context(), req, host)
	if err != nil {
		t.Fatal(err)
	}
	return got, rec.runs[0].fromGuest(t)
}

func ofType(frames []entrypoint.FromGuest, kind string) (found []entrypoint.FromGuest) {
	for _, f := range frames {
		if f.Type == kind {
			found = append(found, f)
		}
	}
	return found
}

// TestConformanceSession is of points 1 to 5.
func TestConformanceSession(t *testing.T) {
	t.Run("01 one session is one execution", func(t *testing.T) {
		s := newSandbox(t, nil)
		for range 2 {
			r, err := s.Run(t.Context(), sandbox.Request{Code: "print('left' in globals()); left = 1; import json; " +
				"json.left = 1", Timeout: 20 * time.Second}, hostFunc(echo))
			if err != nil || r.Stdout() != "False\n" {
				t.Errorf("got %q, %v", r.Stdout(), err)
			}
		}
	})
	t.Run("03 one started, then one done, then nothing", func(t *testing.T) {
		for _, code := range []string{"1", "1/0", "print(mcp_shop.echo(text='a'))", "import os; os._exit(3)",
			"import os; os.kill(os.getpid(), 9)", "def", "import sys; sys.exit(1)"} {
			_, frames := play(t, sandbox.Request{Code: code, Providers: shop("echo")}, echo)
			var order []string
			for _, f := range frames {
				order = append(order, f.Type)
			}
			if len(order) < 3 || order[0] != entrypoint.TypeReady || order[1] != entrypoint.TypeStarted ||
				order[len(order)-1] != entrypoint.TypeDone ||
				len(ofType(frames, entrypoint.TypeStarted)) != 1 || len(ofType(frames, entrypoint.TypeDone)) != 1 {
				t.Errorf("%s: the guest sent %v", code, order)
			}
		}
	})
	t.Run("05 nothing but names and schemas is sent", func(t *testing.T) {
		rec := new(recorder)
		s, err := sandbox.New(rec, config())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Run(t.Context(), sandbox.Request{Code: "1", Timeout: 20 * time.Second,
			Providers: shop("echo")}, hostFunc(echo)); err != nil {
			t.Fatal(err)
		}
		_, frames, _ := bytes.Cut(rec.runs[0].host.Bytes()[len(entrypoint.Source()):], []byte(`"providers":`))
		var providers []map[string]any
		if err := json.NewDecoder(bytes.NewReader(frames)).Decode(&providers); err != nil {
			t.Fatal(err)
		}
		for name := range providers[0] {
			if !slices.Contains([]string{"name", "alias", "description", "tools"}, name) {
				t.Errorf("a provider has the field %q", name)
			}
		}
	})
}

// TestConformanceOutcomes is of points 16 to 21.
func TestConformanceOutcomes(t *testing.T) {
	t.Run("16 output is text as it was written", func(t *testing.T) {
		r, _ := play(t, sandbox.Request{Code: "import sys\nprint('a', None, [1], end='')\nprint()\n" +
			"print('e', file=sys.stderr)"}, echo)
		if r.Stdout() != "a None [1]\n" || r.Stderr() != "e\n" {
			t.Errorf("got %q, %q", r.Stdout(), r.Stderr())
		}
	})
	t.Run("18 durationMs is the run's time", func(t *testing.T) {
		r, frames := play(t, sandbox.Request{Code: "import time; time.sleep(0.2)"}, echo)
		if ms := frames[len(frames)-1].DurationMs; ms < 200 || time.Duration(ms*1e6) > r.Took.Run+time.Second {
			t.Errorf("%v ms, and the host saw %v", ms, r.Took.Run)
		}
	})
	t.Run("20 words make no timeout and no memory limit", func(t *testing.T) {
		for _, code := range []string{
			"class MemoryError(Exception): pass\nraise MemoryError('out of memory')",
			"raise TimeoutError('Execution timed out')",
			"class E(Exception):\n    code = 'timeout'\n    name = 'timeout'\nraise E('cancelled')",
			"from mcp import runtime\nimport sys\nT = sys.modules['guest.results'].ToolError\n" +
				"raise T('x', code='timeout')",
		} {
			if r, _ := play(t, sandbox.Request{Code: code}, echo); r.Status != sandbox.StatusError {
				t.Errorf("%q: %s", code, r.Status)
			}
		}
	})
	t.Run("21 a real timeout, a real memory limit", func(t *testing.T) {
		if r, _ := play(t, sandbox.Request{Code: "while True: pass", Timeout: 300 * time.Millisecond},
			echo); r.Status != sandbox.StatusTimeout {
			t.Errorf("got %s", r.Status)
		}
		if r, _ := play(t, sandbox.Request{Code: "x = bytearray(1 << 40)"},
			echo); r.Status != sandbox.StatusMemoryLimit {
			t.Errorf("got %s", r.Status)
		}
	})
}

// TestConformanceCodes is of point 19: every error code reaches somebody, by the way that is meant.
func TestConformanceCodes(t *testing.T) {
	failing := func(err error) hostFunc {
		return func(context.Context, sandbox.Call) (json.RawMessage, error) { return nil, err }
	}
	hanging := hostFunc(func(ctx context.Context, _ sandbox.Call) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	const link = "import os, json\nlink = max(int(n) for n in os.listdir('/proc/self/fd') if " +
		"os.path.exists('/proc/self/fd/' + n))\n"
	caught := "\ntry: mcp_shop.echo(text=given)\nexcept Exception as e: print(e.code)"
	inCode := []struct {
		code, python string
		host         hostFunc
	}{
		{entrypoint.CodeTimeout, "try: mcp_shop.echo.options(timeout=0.1)(text='a')\nexcept Exception as e: " +
			"print(e.code)", hanging},
		{entrypoint.CodeValidation,
			link + `os.write(link, b'{"type":"tool_call","callId":"1","providerName":1}\n')` +
				"\nprint(json.loads(os.read(link, 9999))['error']['code'])", echo},
		{entrypoint.CodeTool, "given = 'a'" + caught, failing(errors.New("sold out"))},
		{entrypoint.CodeSerialization, "given = {1}\ntry: runtime.call_tool('shop', 'echo', {'text': given})\n" +
			"except Exception as e: print(e.code)", echo},
		{entrypoint.CodeInternal, link + "os.close(link)\ngiven = 'a'" + caught, echo},
		{entrypoint.CodeOutputLimit, "given = 'a'" + caught,
			func(context.Context, sandbox.Call) (json.RawMessage, error) {
				return json.Marshal(strings.Repeat("x", entrypoint.MaxFrame))
			}},
		{entrypoint.CodeCallLimit, "for _ in range(1001):\n    try: mcp_shop.echo(text='a')\n" +
			"    except Exception as e: print(e.code)", echo},
		{entrypoint.CodeDenied, "given = 'a'" + caught, failing(&entrypoint.CallError{Code: entrypoint.CodeDenied,
			Message: "no"})},
	}
	for _, tt := range inCode {
		t.Run("19 "+tt.code, func(t *testing.T) {
			if r, _ := play(t, sandbox.Request{Code: tt.python, Providers: shop("echo")},
				tt.host); r.Stdout() != tt.code+"\n" {
				t.Errorf("got %q, %+v", r.Stdout(), r.Error)
			}
		})
	}
	inDone := []struct {
		code, python string
		timeout      time.Duration
	}{
		{entrypoint.CodeRuntime, "1/0", 0},
		{entrypoint.CodeMemoryLimit, "x = bytearray(1 << 40)", 0},
		{entrypoint.CodeCancelled, "while True: pass", 300 * time.Millisecond},
	}
	for _, tt := range inDone {
		t.Run("19 "+tt.code, func(t *testing.T) {
			_, frames := play(t, sandbox.Request{Code: tt.python, Timeout: tt.timeout}, echo)
			if done := frames[len(frames)-1]; done.Error == nil || done.Error.Code != tt.code {
				t.Errorf("got %+v", done)
			}
		})
	}
}

// TestConformanceCancel is of points 22 to 24.
func TestConformanceCancel(t *testing.T) {
	t.Run("22 a cancel ends calls that are under way", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan struct{})
		r, err := newSandbox(t, nil).Run(ctx, sandbox.Request{Code: "print('up')\nmcp_shop.echo(text='a')",
			Timeout: time.Minute, Providers: shop("echo")},
			hostFunc(func(ctx context.Context, _ sandbox.Call) (json.RawMessage, error) {
				cancel()
				<-ctx.Done()
				close(told)
				return nil, ctx.Err()
			}))
		<-told
		if err != nil || r.Status != sandbox.StatusCancelled || r.Stdout() != "up\n" {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("23 a guest that doesn't heed it is ended", func(t *testing.T) {
		s, err := sandbox.New(scripted{before: ready, after: output, wait: true, exit: runtime.Exit{Code: 137}},
			config())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: 100 * time.Millisecond},
			hostFunc(echo))
		if err != nil || r.Status != sandbox.StatusTimeout || r.Stdout() != "before" {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("23 nor does it call a tool any more", func(t *testing.T) {
		var called atomic.Bool
		call := `{"type":"tool_call","callId":"1","providerName":"shop","safeToolName":"echo","input":{}}`
		s, err := sandbox.New(scripted{before: ready, late: call + "\n" + output, exit: runtime.Exit{Code: 137}},
			config())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: 100 * time.Millisecond,
			Providers: shop("echo")}, hostFunc(func(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
			called.Store(true)
			return echo(ctx, c)
		}))
		if err != nil || r.Status != sandbox.StatusTimeout || called.Load() || r.Stdout() != "before" {
			t.Errorf("got %+v, %v, called %v; want no call", r, err, called.Load())
		}
	})
	t.Run("23 a cancel after done changes nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := newSandbox(t, nil).Run(ctx, sandbox.Request{Code: "print('a')", Timeout: time.Minute},
			hostFunc(echo))
		cancel()
		if err != nil || r.Status != sandbox.StatusOK {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("24 the end of the stream without done is no success", func(t *testing.T) {
		s, err := sandbox.New(scripted{before: ready, after: output}, config())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: time.Minute}, hostFunc(echo))
		if err != nil || r.Status == sandbox.StatusOK || r.Stdout() != "before" {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}
