//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
)

func TestResultsAreRaw(t *testing.T) {
	p := open(t, nil, fake("normal"))
	for _, tt := range []struct{ name, tool, args, want string }{
		{name: "byte for byte", tool: "raw", want: `{ "n" : 9007199254740993, "f":1.0,  "u":"\u00e9é" }`},
		{name: "arguments reach the server exactly", tool: "echo", args: `{"n":9007199254740993,"f":1.0}`,
			want: `{"n":9007199254740993,"f":1.0}`},
		{name: "no arguments", tool: "echo", want: `{}`},
		{name: "null arguments", tool: "echo", args: "null", want: `{}`},
		{name: "arguments over several lines", tool: "echo", args: "{\n\"a\":\r\n1}", want: `{"a":1}`},
		{name: "bad UTF-8 in arguments", tool: "echo", args: "{\"a\":\"\xff\"}", want: `{"a":"�"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := call(t, p, tt.tool, tt.args)
			if got != tt.want {
				t.Errorf("got %.200q (%d bytes), want %.200q (%d bytes)", got, len(got), tt.want, len(tt.want))
			}
		})
	}
}

func TestErrorsOfTheServer(t *testing.T) {
	p := open(t, nil, fake("normal"))
	for _, tt := range []struct {
		name, error string
		want        RPCError
	}{
		{name: "code, message and data", error: `{"code":-32050,"message":"boom","data":{"n":9007199254740993}}`,
			want: RPCError{Code: -32050, Message: "boom", Data: json.RawMessage(`{"n":9007199254740993}`)}},
		{name: "with a secret", error: `{"code":1,"message":"bad s3cr3t-value","data":"s3cr3t-value"}`,
			want: RPCError{Code: 1, Message: "bad ***", Data: json.RawMessage(`"***"`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := p.Call(t.Context(), "fake", "error", json.RawMessage(`{"e":`+tt.error+`}`))
			var got *RPCError
			if !errors.As(serverError(t, err, `calling the tool "error"`), &got) {
				t.Fatalf("got %v, want a *RPCError", err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("arguments that are no object", func(t *testing.T) {
		for _, args := range []string{"[1]", "{", `"x"`} {
			_, err := p.Call(t.Context(), "fake", "echo", json.RawMessage(args))
			serverError(t, err, "no JSON object")
		}
	})
	t.Run("the session lives", func(t *testing.T) {
		if got := call(t, p, "echo", `{"a":1}`); got != `{"a":1}` {
			t.Errorf("got %s", got)
		}
	})
}

func TestCallEndsWithItsContext(t *testing.T) {
	p := open(t, nil, fake("normal"))
	ctx, cancel := context.WithCancel(t.Context())
	done := begin(ctx, p, "fake", "never", nil)
	id := until(t, p, func(s seen) bool { return len(s.Waiting) > 0 }).Waiting[0]
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	s := until(t, p, func(s seen) bool { return len(s.Cancelled) > 0 })
	if diff := cmp.Diff([]string{id}, s.Cancelled); diff != "" {
		t.Error(diff)
	}
	_, err := p.Call(withTimeout(t, 50*time.Millisecond), "fake", "never", nil)
	if !errors.Is(serverError(t, err), context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	if _, err := p.Call(ctx, "fake", "echo", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: got %v", err)
	}
	if got := call(t, p, "echo", `{"a":1}`); got != `{"a":1}` {
		t.Errorf("got %s", got)
	}
}

func TestServerDiesInACall(t *testing.T) {
	p := open(t, nil, fake("normal"))
	first := look(t, p).PID
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			_, err := p.Call(t.Context(), "fake", "never", nil)
			serverError(t, err, "exit status 3")
		})
	}
	until(t, p, func(s seen) bool { return len(s.Waiting) == 5 })
	_, err := p.Call(t.Context(), "fake", "die", nil)
	e := serverError(t, err, `calling the tool "die"`, "exit status 3", "token is ***")
	if !strings.Contains(e.Stderr, "token is ***") {
		t.Errorf("Stderr is %q", e.Stderr)
	}
	if second := look(t, p).PID; second == first {
		t.Errorf("the next call went to the same process")
	}
	vanished(t, first)
	_, err = p.Call(t.Context(), "fake", "die", nil)
	serverError(t, err)
	all.Wait()
}

func TestLastAnswerOfADyingServerArrives(t *testing.T) {
	p := open(t, nil, fake("normal"))
	for range 10 {
		if got := call(t, p, "answer and die", ""); got != `{"last":true}` {
			t.Errorf("got %s", got)
		}
		s := live(p)
		<-s.dying // a call before that would go to the same process
	}
}

// Who waits for a server that doesn't read leaves with its context, long before the server is given
// up.
func TestCallEndsWithItsContextUnread(t *testing.T) {
	p := open(t, nil, fake("stops reading"))
	call(t, p, "echo", "")
	args := json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
	for range 3 {
		_, err := p.Call(withTimeout(t, 20*time.Millisecond), "fake", "echo", args)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
	}
}

// A grandchild keeps the pipes open when the server dies; the caller must not wait for it, and it
// must not stay.
func TestServerDiesBeforeItsChild(t *testing.T) {
	p := open(t, nil, fake("grandchild"))
	child := look(t, p).Child
	_, err := p.Call(t.Context(), "fake", "die", nil)
	serverError(t, err, "exit status 3")
	vanished(t, child)
	call(t, p, "echo", "")
}

func TestServerDiesBetweenCalls(t *testing.T) {
	p := open(t, nil, fake("normal"))
	first := look(t, p).PID
	s := live(p)
	_ = syscall.Kill(first, syscall.SIGKILL)
	<-s.dying
	if second := look(t, p).PID; second == first {
		t.Error("the next call went to the same process")
	}
	if !strings.Contains(s.cause.Error(), "signal: killed") {
		t.Errorf("the cause is %q", s.cause)
	}
}

func TestRequestsOfTheServer(t *testing.T) {
	p := open(t, nil, fake("normal"))
	var got []string
	if err := json.Unmarshal([]byte(call(t, p, "ask", "")), &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"ping: {}",
		`sampling/createMessage: {"code":-32601,"message":"the client doesn't support sampling/createMessage"}`}
	for _, m := range []string{"roots/list", "elicitation/create"} {
		want = append(want, m+`: {"code":-32601,"message":"the client doesn't support `+m+`: no call for one `+
			`that could answer is under way"}`)
	}
	want = append(want, `nonsense: {"code":-32601,"message":"the client doesn't support nonsense"}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTraceIsTold: a server learns of the trace of its call, beside whatever else it is told, and
// of none where there isn't one.
func TestTraceIsTold(t *testing.T) {
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
		TraceFlags: trace.FlagsSampled})
	traced := trace.ContextWithSpanContext(t.Context(), span)
	const parent = "00-01000000000000000000000000000000-0200000000000000-01"
	s := &session{}
	id := json.RawMessage(`"b-1"`)
	for _, tc := range []struct {
		name     string
		progress bool
		traced   bool
		want     map[string]any
	}{
		{"neither", false, false, nil},
		{"progress", true, false, map[string]any{"progressToken": id}},
		{"a trace", false, true, map[string]any{"traceparent": parent}},
		{"both", true, true, map[string]any{"progressToken": id, "traceparent": parent}},
	} {
		ctx := t.Context()
		if tc.traced {
			ctx = traced
		}
		if diff := cmp.Diff(tc.want, s.metaFor(ctx, id, tc.progress)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	s.meta = map[string]any{"own": 1}
	_ = s.metaFor(traced, id, true)
	if len(s.meta) != 1 {
		t.Errorf("what all requests carry has changed: %v", s.meta)
	}
}
