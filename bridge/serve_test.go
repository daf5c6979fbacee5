package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// untilCancelled is a run that ends with its context only.
func untilCancelled(started chan<- string, ended chan<- string) func(context.Context, sandbox.Request,
	sandbox.Host) (sandbox.Result, error) {
	return func(ctx context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
		started <- r.Code
		<-ctx.Done()
		ended <- r.Code
		return sandbox.Result{Status: sandbox.StatusCancelled, Message: "The run was cancelled."}, nil
	}
}

func TestCancelEndsTheRun(t *testing.T) {
	started, ended := make(chan string, 1), make(chan string, 1)
	p := connect(t, running(t, untilCancelled(started, ended)))
	for _, id := range []string{`7`, `"7"`, `9007199254740993`} {
		p.send(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"run_python",`+
			`"arguments":{"code":"x"}}}`, id)
		<-started
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"no such"}}`)
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"bored"}}`,
			id)
		<-ended
		p.send(`{"jsonrpc":"2.0","id":"after","method":"ping"}`)
		if f := p.next(); string(f.ID) != `"after"` {
			t.Errorf("the cancelled call %s was answered: %s %s", id, f.ID, f.Result)
		}
	}
}

// TestCancelIsNeverLost: a cancel right behind its call ends it, however far the call has come.
func TestCancelIsNeverLost(t *testing.T) {
	started, ended := make(chan string, 1000), make(chan string, 1000)
	p := connect(t, running(t, untilCancelled(started, ended)))
	for i := range 200 {
		p.run(i, `{"code":"x"}`, "")
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i)
	}
	p.in.Close()
	if err := <-p.served; err != nil {
		t.Error(err)
	}
	for f := range p.frames {
		t.Errorf("a cancelled call was answered: %s", f.ID)
	}
	if len(started) != len(ended) {
		t.Errorf("%d runs started and %d ended", len(started), len(ended))
	}
}

// TestManyAtOnce: no answer is mixed up, none waits for another, and a cancel gets through
// meanwhile.
func TestManyAtOnce(t *testing.T) {
	const calls = 30
	var all sync.WaitGroup
	all.Add(calls)
	p := connect(t, running(t, func(ctx context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
		error) {
		if r.Code == "hang" {
			<-ctx.Done()
			return sandbox.Result{Status: sandbox.StatusCancelled}, nil
		}
		all.Done()
		all.Wait()
		return printed(r.Code), nil
	}))
	p.run(1000, `{"code":"hang"}`, "")
	for i := range calls {
		p.run(i, fmt.Sprintf(`{"code":"answer %d"}`, i), "")
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1000}}`)
	seen := map[string]bool{}
	for range calls {
		f := p.next()
		if got, want := f.tool(t).Content[0].Text, "answer "+string(f.ID); got != want {
			t.Errorf("call %s got %q", f.ID, got)
		}
		seen[string(f.ID)] = true
	}
	if len(seen) != calls {
		t.Errorf("%d calls were answered, want %d", len(seen), calls)
	}
}

func TestEndOfInput(t *testing.T) {
	started, ended := make(chan string, 1), make(chan string, 1)
	p := connect(t, running(t, untilCancelled(started, ended)))
	p.run(1, `{"code":"x"}`, "")
	<-started
	p.in.Close()
	if err := <-p.served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if len(ended) != 1 {
		t.Error("Serve returned before the run had ended")
	}
	if f := p.next(); !f.tool(t).IsError {
		t.Errorf("got %s", f.Result)
	}
}

// TestPipedInput: requests before the end of the input are answered; `mcp-bridge < requests` is a
// way to look at a server.
func TestPipedInput(t *testing.T) {
	var out strings.Builder
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize",` +
		`"params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` +
		"\n\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\r\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if err := build(t, nil).Serve(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"id":1,`) ||
		!strings.Contains(got, `"id":2,`) {
		t.Errorf("got %s", got)
	}
}

func TestContextEndsServe(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	started, ended := make(chan string, 1), make(chan string, 1)
	b := running(t, untilCancelled(started, ended))
	in, w := io.Pipe()
	defer w.Close()
	served := make(chan error, 1)
	go func() { served <- b.Serve(ctx, in, io.Discard) }()
	fmt.Fprintln(w, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python",`+
		`"arguments":{"code":"x"}}}`)
	<-started
	stop := errors.New("SIGTERM")
	cancel(stop)
	if err := <-served; !errors.Is(err, stop) || len(ended) != 1 {
		t.Errorf("Serve: %v with %d runs ended", err, len(ended))
	}
}

func TestOddMessages(t *testing.T) {
	p := connect(t, build(t, nil))
	for _, tc := range []struct{ name, line, want string }{
		{"no JSON", `hello`, `null -32700`},
		{"a batch", `[]`, `null -32600`},
		{"unknown method", `{"jsonrpc":"2.0","id":"a","method":"tools/cull"}`, `"a" -32601`},
		{"unknown tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_perl"}}`, `1 -32602`},
		{"unknown resource", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x:y"}}`,
			`1 -32002`},
		{"the manual", `{"jsonrpc":"2.0","id":1,"method":"resources/read",` +
			`"params":{"uri":"resource://mcp-bridge/capabilities"}}`, `1 0`},
		{"the manual by the Python project's name", `{"jsonrpc":"2.0","id":1,"method":"resources/read",` +
			`"params":{"uri":"resource://mcp-server-code-execution-mode/capabilities"}}`, `1 0`},
		{"params of another type", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[1]}`, `5 -32600`},
		{"no method", `{"jsonrpc":"2.0","id":5}`, `5 -32600`},
		{"names in capitals", `{"jsonrpc":"2.0","ID":5,"METHOD":"ping"}`, `null -32600`},
		{"too long", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 16<<20) +
			`"}}`, `1 -32600`},
		{"a great id", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `9007199254740993 0`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p.send(`{"jsonrpc":"2.0","id":3,"result":{}}`) // an answer to no question
			p.send(`{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"x"}}`)
			p.send(`{"jsonrpc":"2.0","method":"notifications/whatever"}`)
			p.send(`%s`, tc.line)
			f := p.next()
			got := string(f.ID) + " 0"
			if f.Error != nil {
				got = fmt.Sprintf("%s %d", f.ID, f.Error.Code)
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestOddParams: an error says what is wrong with the request, in the words of the protocol.
func TestOddParams(t *testing.T) {
	p := connect(t, build(t, nil))
	for request, want := range map[string]string{
		`"method":"tools/call","params":[]`:              "params must not be a JSON array",
		`"method":"tools/call","params":7`:               "params must not be a JSON number",
		`"method":"tools/call","params":{"name":5}`:      "params.name must not be a JSON number",
		`"method":"tools/call","params":{"_meta":"x"}`:   "params._meta must not be a JSON string",
		`"method":"resources/read","params":{"uri":{}}`:  "params.uri must not be a JSON object",
		`"method":"tools/list","params":{"cursor":true}`: "params.cursor must not be a JSON bool",
		`"method":"prompts/get","params":"x"`:            "params must not be a JSON string",
		`"id":1,"METHOD":"ping"`:                         "the members of a message are written in lower case",
		`"params":{}`:                                    "it is neither a request nor an answer",
	} {
		p.send(`{"jsonrpc":"2.0","id":1,%s}`, request)
		if f := p.next(); f.Error == nil || f.Error.Message != want || f.Error.Code != -32600 {
			t.Errorf("%s: got %+v, want %s", request, f.Error, want)
		}
	}
}

// TestPanicIsOneAnswer: nothing is left behind (TestMain counts), the progress comes first, and the
// log has the stack once.
func TestPanicIsOneAnswer(t *testing.T) { synctest.Test(t, panicIsOneAnswer) }

func panicIsOneAnswer(t *testing.T) {
	log := &lines{}
	p := connect(t, build(t, func(c *Config) {
		c.Log = log.logger()
		c.Runner = fakeRunner{run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
			error) {
			if r.Output != nil {
				r.Output(sandbox.Chunk{Stream: "stdout", Text: "before\n"})
				time.Sleep(100 * time.Millisecond)
			}
			panic("oh")
		}}
	}))
	for _, meta := range []string{"", `{"progressToken":"t"}`} {
		p.run(1, `{"code":"x"}`, meta)
		f, reports := p.next(), ""
		for ; f.Method != ""; f = p.next() {
			reports += f.Params.Message
		}
		if f.Error == nil || string(f.ID) != "1" || !strings.Contains(f.Error.Message, "oh") {
			t.Errorf("got %+v", f)
		}
		if meta != "" && !strings.Contains(reports, "before") {
			t.Errorf("reported before the answer: %q", reports)
		}
		synctest.Wait()
		log.onePanic(t, "oh", statusPanic)
	}
	p.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if f := p.next(); f.Error != nil || len(p.frames) != 0 {
		t.Errorf("got %+v, and %d more", f, len(p.frames))
	}
}

// TestOneLogLine: a call is one line, and neither code nor output is in it.
func TestOneLogLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		connect(t, build(t, func(c *Config) { c.Log = log.logger() })).call(`{"code":"SECRET"}`)
		synctest.Wait()
		log.mu.Lock()
		defer log.mu.Unlock()
		var line map[string]any
		if err := json.Unmarshal([]byte(log.text.String()), &line); err != nil {
			t.Fatalf("%v in %s", err, log.text.String())
		}
		if line["status"] != "ok" || line["run"] == nil || line["took"] == nil ||
			strings.Contains(log.text.String(), "SECRET") {
			t.Errorf("got %s", log.text.String())
		}
	})
}

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(writerFunc(func(p []byte) (int, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.text.Write(p)
	}), nil))
}

// onePanic takes what was logged, which must be lines with those statuses and then one error with
// the panic and its stack.
func (l *lines) onePanic(t *testing.T, want string, before ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var line struct{ Level, Status, Panic, Stack string }
	d := json.NewDecoder(strings.NewReader(l.text.String()))
	for _, status := range append(before, "") {
		if err := d.Decode(&line); err != nil || line.Status != status && status != "" {
			t.Fatalf("%v, or not %q, in %s", err, status, l.text.String())
		}
	}
	if d.More() || line.Level != "ERROR" || line.Panic != want || !strings.Contains(line.Stack, "_test.go") {
		t.Errorf("logged: %s", l.text.String())
	}
	l.text.Reset()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
