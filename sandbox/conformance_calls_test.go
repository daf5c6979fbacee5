package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestConformanceCalls is of points 6 to 11 and 15.
func TestConformanceCalls(t *testing.T) {
	refusing := hostFunc(func(context.Context, sandbox.Call) (json.RawMessage, error) {
		return nil, &entrypoint.CallError{Code: entrypoint.CodeDenied, Message: "not you",
			Data: json.RawMessage(`{"by":"policy"}`)}
	})
	tests := []struct {
		name, code, want string
		host             hostFunc
	}{
		{"06 a server is one name, its tools are attributes", "print(callable(mcp_shop.echo), 'echo' in " +
			"dir(mcp_shop), mcp_servers['shop'] is mcp_shop)", "True True True\n", echo},
		{"07 a tool is a function, awaited or not", "import asyncio\nprint(mcp_shop.echo(text='a') if False " +
			"else await mcp_shop.echo(text='a'))", "a\n", echo},
		{"07 what is omitted is not sent", "print(mcp_shop.echo())", "{}\n",
			func(_ context.Context, c sandbox.Call) (json.RawMessage, error) {
				return echo(context.Background(), sandbox.Call{Input: json.RawMessage(fmt.Sprintf(`{"text":%q}`,
					c.Input))})
			}},
		{"08 awaiting suspends, anywhere", "import asyncio\nasync def deep(n):\n    return await deep(n - 1) if " +
			"n else await mcp_shop.echo(text='a')\n" +
			"print([x async for x in (await deep(i) for i in range(3))], await asyncio.gather(deep(5), deep(5)))",
			"['a', 'a', 'a'] ['a', 'a']\n", echo},
		{"09 a failure is raised with message and code", "try: mcp_shop.echo(text='a')\nexcept Exception as e: " +
			"print(e, e.code, e.data, e.server, e.tool)", "not you denied {'by': 'policy'} shop echo\n", refusing},
		{"10 a failure that is caught is no failure of the run",
			"try: mcp_shop.echo(text='a')\nexcept Exception: print('caught')", "caught\n", refusing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := play(t, sandbox.Request{Code: tt.code, Providers: shop("echo")}, tt.host)
			if r.Status != sandbox.StatusOK || r.Stdout() != tt.want {
				t.Errorf("got %s, %q, %+v; want %q", r.Status, r.Stdout(), r.Error, tt.want)
			}
		})
	}
	t.Run("10 the code of an uncaught failure is the host's", func(t *testing.T) {
		for code, want := range map[string]string{
			"mcp_shop.echo(text='a')": entrypoint.CodeDenied,
			"class ToolError(Exception):\n    code = 'denied'\nraise ToolError('forged')": entrypoint.CodeRuntime,
		} {
			r, frames := play(t, sandbox.Request{Code: code, Providers: shop("echo")}, refusing)
			done := frames[len(frames)-1]
			if r.Status != sandbox.StatusError || done.Error == nil || done.Error.Code != want {
				t.Errorf("%s: %s, %+v, want %s", code, r.Status, done.Error, want)
			}
		}
	})
	t.Run("11 no id of a call is used twice", func(t *testing.T) {
		_, frames := play(t, sandbox.Request{Code: "import asyncio\nfor _ in range(3): await " +
			"asyncio.gather(*(mcp_shop.echo(text='a') for _ in range(40)))", Providers: shop("echo")}, echo)
		seen := map[string]bool{}
		for _, f := range ofType(frames, entrypoint.TypeToolCall) {
			if seen[f.CallID] {
				t.Errorf("the id %s comes twice", f.CallID)
			}
			seen[f.CallID] = true
		}
		if len(seen) != 120 {
			t.Errorf("%d calls, want 120", len(seen))
		}
	})
}

// TestConformanceValues is of points 12 to 14.
func TestConformanceValues(t *testing.T) {
	cross := []struct{ name, python, want string }{
		{"null", "None", "null"}, {"bool", "True", "true"}, {"string", `"é\u2028\0"`, `"é` + "\u2028" + `\u0000"`},
		{"number", "1.5", "1.5"},
		{"64 bits", "-(1 << 63)", "-9223372036854775808"},
		{"64 bits unsigned", "(1 << 64) - 1", "18446744073709551615"},
		{"list", "[1, (2, [])]", "[1,[2,[]]]"}, {"map", "{'a': {'b': 1}}", `{"a":{"b":1}}`},
		{"datetime", "__import__('datetime').datetime(2026, 1, 2, 3, 4)", `"2026-01-02T03:04:00"`},
		{"decimal", "__import__('decimal').Decimal('0.10')", `"0.10"`},
		{"bytes", "b'ab'", `{"$base64":"YWI="}`},
		{"dataclass", "__import__('dataclasses').make_dataclass('P', ['x'])(1)", `{"x":1}`},
		{"the same list twice", "[shared, shared]", "[[1],[1]]"},
	}
	any := []entrypoint.Provider{{Name: "shop", Alias: "shop", Tools: map[string]entrypoint.Tool{
		"take": {SafeName: "take", OriginalName: "take",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"value":{}}}`)},
	}}}
	for _, tt := range cross {
		t.Run("12 "+tt.name, func(t *testing.T) {
			var input struct{ Value json.RawMessage }
			r, _ := play(t, sandbox.Request{Code: "shared = [1]\nmcp_shop.take(value=" + tt.python + ")",
				Providers: any}, func(_ context.Context, c sandbox.Call) (json.RawMessage, error) {
				return json.RawMessage("null"), json.Unmarshal(c.Input, &input)
			})
			if r.Status != sandbox.StatusOK || string(input.Value) != tt.want {
				t.Errorf("%s, %+v: the host got %s, want %s", r.Status, r.Error, input.Value, tt.want)
			}
		})
	}
	refused := []struct{ name, python, path string }{
		{"nan", "[1, float('nan')]", "value[1]"}, {"infinity", "{'a': float('-inf')}", "value.a"},
		{"set", "{'a': [{1}]}", "value.a[0]"},
		{"object", "object()", "value"}, {"cycle", "cycle", "value[0]"}, {"65 bits", "1 << 64", "value"},
		{"key", "{1: 2}", "value"},
		{"half of a pair", `["\ud800"]`, "value[0]"}, {"too deep", "deep", "value[0]"},
	}
	for _, tt := range refused {
		t.Run("13 "+tt.name, func(t *testing.T) {
			code := "cycle = []\ncycle.append(cycle)\ndeep = []\nfor _ in range(5000): deep = [deep]\n" +
				"try: mcp_shop.take(value=" + tt.python + ")\nexcept Exception as e: print(e.code, e.path)"
			r, _ := play(t, sandbox.Request{Code: code, Providers: any},
				func(context.Context, sandbox.Call) (json.RawMessage, error) {
					t.Error("it was sent")
					return nil, errors.New("it was sent")
				})
			if !strings.HasPrefix(r.Stdout(), "serialization_error "+tt.path) {
				t.Errorf("got %q, %+v, want %s", r.Stdout(), r.Error, tt.path)
			}
		})
	}
	t.Run("13 a result that is no JSON", func(t *testing.T) {
		r, _ := play(t, sandbox.Request{Code: "try: mcp_shop.take()\nexcept Exception as e: print(e.code)",
			Providers: any},
			func(context.Context, sandbox.Call) (json.RawMessage, error) { return json.RawMessage(`{"a":NaN}`), nil })
		if r.Stdout() != "internal_error\n" {
			t.Errorf("got %q", r.Stdout())
		}
	})
	t.Run("14 shared parts don't blow up", func(t *testing.T) {
		r, _ := play(t, sandbox.Request{Code: "x = []\nfor _ in range(60): x = [x, x]\n" +
			"try: mcp_shop.take(value=x)\nexcept Exception as e: print(e.code)", Providers: any, Timeout: time.Minute},
			func(context.Context, sandbox.Call) (json.RawMessage, error) { return nil, errors.New("it was sent") })
		if r.Stdout() != "serialization_error\n" {
			t.Errorf("got %q, %s %s", r.Stdout(), r.Status, r.Message)
		}
	})
}
