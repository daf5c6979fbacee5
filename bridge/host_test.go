package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// hostFor is the host side of a run with these servers.
func hostFor(t *testing.T, b *Bridge, servers string) *host {
	t.Helper()
	r := b.newRun(request{}, nil)
	var err error
	r.args, err = b.decoder.decode(b.Catalog(), json.RawMessage(`{"code":"x","servers":`+servers+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return r.host(t.Context(), nil)
}

func TestHost(t *testing.T) {
	h := hostFor(t, build(t, nil), `["github","broken"]`)
	for _, tc := range []struct {
		name, provider, tool, input string
		want                        string // the result, or "code: part of the message"
	}{
		{"by alias, which is a name too", "github", "list_issues", `{"a":1}`,
			`{"content":[{"type":"text","text":"github.list_issues{\"a\":1}"}]}`},
		{"by the alias of a collision", "github", "list_issues__2", ``,
			`{"content":[{"type":"text","text":"github.list-issues{}"}]}`},
		{"by real name", "github", "list-issues", `null`,
			`{"content":[{"type":"text","text":"github.list-issues{}"}]}`},
		{"big integers stay", "github", "me", `{"n":9007199254740993}`,
			`{"content":[{"type":"text","text":"github.me{\"n\":9007199254740993}"}]}`},
		{"unknown tool", "github", "list_isues", `{}`, `validation_error: server "github" has no tool ` +
			`"list_isues" (did you mean`},
		{"arguments no object", "github", "me", `[1]`, `validation_error: must be an object, not a list`},
		{"arguments no JSON", "github", "me", `{"a":`, `validation_error: must be an object`},
		{"forged server", "My Files!", "read", `{}`, `denied: server "My Files!" is not part of this call; name ` +
			`it in run_python's argument servers`},
		{"forged alias", "my_files_", "read", `{}`, `denied: server "My Files!"`},
		{"unknown server", "gitub", "me", `{}`, `validation_error: there is no server "gitub" (did you mean ` +
			`"github"?); there are: "broken", "github"`},
		{"unusable server", "linear", "me", `{}`, `validation_error: server "linear" is configured in`},
		{"server that doesn't start", "broken", "me", `{}`,
			`tool_error: server "broken": starting it: exec: no such file`},

		{"helper unknown", "runtime", "list_prompt", `{}`,
			`validation_error: the runtime has no helper "list_prompt" (did you mean "list_prompts"?); it has: ` +
				`complete, describe_server, get_prompt,`},
		{"helper with a wrong argument", "runtime", "load_server", `{"servr":"github"}`,
			`validation_error: bad arguments for runtime.load_server: unknown field "servr"`},
		{"helper with a wrong type", "runtime", "load_server", `{"server":1}`,
			`validation_error: bad arguments for runtime.load_server: server must be a string, not a number`},
		{"helper with a list for a number", "runtime", "search_tool_docs", `{"query":"x","limit":["5"]}`,
			`validation_error: bad arguments for runtime.search_tool_docs: limit must be a whole number, not a list`},
		{"helper with half a number", "runtime", "search_tool_docs", `{"query":"x","limit":1.5}`,
			`validation_error: bad arguments for runtime.search_tool_docs: limit must be a whole number, not a ` +
				`number 1.5`},
		{"describe_server", "runtime", "describe_server", `{"server":"github"}`,
			`{"name":"github","alias":"github","description":"Issues and\npulls","allowed":true}`},
		{"describe_server of another", "runtime", "describe_server", `{"server":"My Files!"}`,
			`{"name":"My Files!","alias":"my_files_","allowed":false}`},
		{"describe_server unknown", "runtime", "describe_server", `{"server":"x"}`,
			`validation_error: there is no server "x"`},
		{"load_server of another", "runtime", "load_server", `{"server":"my_files_"}`,
			`denied: server "My Files!"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := h.Call(t.Context(), sandbox.Call{Provider: tc.provider, Tool: tc.tool,
				Input: json.RawMessage(tc.input)})
			got := string(res)
			if err != nil {
				var e *entrypoint.CallError
				if !errors.As(err, &e) {
					t.Fatalf("an error without a code: %v", err)
				}
				got = e.Code + ": " + e.Message
				code, part, _ := strings.Cut(tc.want, ": ")
				if e.Code == code && strings.Contains(e.Message, part) {
					return
				}
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestHostWithoutServers(t *testing.T) {
	h := hostFor(t, build(t, nil), `[]`)
	for _, provider := range []string{"github", "My Files!", "broken"} {
		var e *entrypoint.CallError
		if _, err := h.Call(t.Context(), sandbox.Call{Provider: provider, Tool: "me"}); !errors.As(err, &e) ||
			e.Code != entrypoint.CodeDenied {
			t.Errorf("%s: got %v, want denied", provider, err)
		}
	}
}

func TestUpstreamErrors(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		err  error
		want entrypoint.CallError
	}{
		{"bad arguments", t.Context(), &upstream.RPCError{Code: -32602, Message: "no owner",
			Data: json.RawMessage(`{"f":"owner"}`)},
			entrypoint.CallError{Code: "validation_error", Data: json.RawMessage(
				`{"code":-32602,"data":{"f":"owner"}}`)}},
		{"other JSON-RPC error", t.Context(), &upstream.RPCError{Code: -32050, Message: "boom"},
			entrypoint.CallError{Code: "tool_error", Data: json.RawMessage(`{"code":-32050}`)}},
		{"died", t.Context(), &upstream.ServerError{Server: "github", Op: "calling me",
			Err: errors.New("it has died"), Stderr: "secret"},
			entrypoint.CallError{Code: "tool_error"}},
		{"too slow", t.Context(), fmt.Errorf("listing tools: %w", context.DeadlineExceeded),
			entrypoint.CallError{Code: "timeout"}},
		{"the run ended", ended, context.Canceled, entrypoint.CallError{Code: "cancelled"}},
		{"shutdown", t.Context(), upstream.ErrClosed, entrypoint.CallError{Code: "internal_error"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := hostFor(t, build(t, func(c *Config) {
				u := c.Upstreams.(fakeUpstreams)
				u.call = func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
					return nil,
						tc.err
				}
				c.Upstreams = u
			}), `["github"]`)
			_, err := h.Call(tc.ctx, sandbox.Call{Provider: "github", Tool: "me"})
			var e *entrypoint.CallError
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if e.Code != tc.want.Code || string(e.Data) != string(tc.want.Data) {
				t.Errorf("got %s %s, want %s %s", e.Code, e.Data, tc.want.Code, tc.want.Data)
			}
			if strings.Contains(e.Message, "secret") {
				t.Errorf("the message holds the server's stderr: %s", e.Message)
			}
			if tc.name == "died" && e.Message != `server "github": calling me: it has died (the bridge's log has the `+
				"last lines that it wrote to stderr)" {
				t.Errorf("message: %s", e.Message)
			}
		})
	}
}

// TestSlowServer: it holds up no call of another server, and ends with the run.
func TestSlowServer(t *testing.T) {
	asked := make(chan struct{})
	h := hostFor(t, build(t, func(c *Config) {
		u := c.Upstreams.(fakeUpstreams)
		u.call = func(ctx context.Context, server, _ string, _ json.RawMessage) (json.RawMessage, error) {
			if server == "github" {
				close(asked)
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return json.RawMessage(`{}`), nil
		}
		c.Upstreams = u
	}), `["github","My Files!"]`)
	ctx, end := context.WithCancel(t.Context())
	slow := make(chan error, 1)
	go func() {
		_, err := h.Call(ctx, sandbox.Call{Provider: "github", Tool: "me"})
		slow <- err
	}()
	<-asked
	if _, err := h.Call(ctx, sandbox.Call{Provider: "My Files!", Tool: "read"}); err != nil {
		t.Error(err)
	}
	end()
	var e *entrypoint.CallError
	if err := <-slow; !errors.As(err, &e) || e.Code != entrypoint.CodeCancelled {
		t.Errorf("got %v, want cancelled", err)
	}
}

// TestRealServer has the calls of a run answered by a server of its own process.
func TestRealServer(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	servers := []discovery.Server{{Name: "shop", Command: self, Env: map[string]string{asServer: "1"},
		Transport: "stdio"}}
	pool := upstream.NewPool(upstream.Config{Servers: servers})
	defer func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}()
	h := hostFor(t, build(t, func(c *Config) { c.Servers, c.Upstreams = servers, pool }), `["shop"]`)
	for _, tc := range []struct{ tool, input, want string }{
		{"add", `{"a":9007199254740992,"b":1}`, `"structuredContent":{"sum":9007199254740993}`},
		{"search_orders", `{"query":"ada"}`, `A-1057`},
		{"fail", `{"message":"no tea"}`, `no tea`},
		{"exit", `{"code":3}`, `tool_error: server "shop": `},
		{"echo", `{"text":"again"}`, `again`},
		{"nope", `{}`, `validation_error: server "shop" has no tool "nope"`},
	} {
		t.Run(tc.tool, func(t *testing.T) {
			res, err := h.Call(t.Context(), sandbox.Call{Provider: "shop", Tool: tc.tool,
				Input: json.RawMessage(tc.input)})
			got := string(res)
			var e *entrypoint.CallError
			if errors.As(err, &e) {
				got = e.Code + ": " + e.Message
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			t.Log(got)
		})
	}
}

// TestHostPanics: it is on the sandbox's goroutine, which doesn't recover.
func TestHostPanics(t *testing.T) {
	log := &lines{}
	h := hostFor(t, build(t, func(c *Config) {
		u := c.Upstreams.(fakeUpstreams)
		u.call = func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) { panic("oh") }
		c.Upstreams, c.Log = u, log.logger()
	}), `["github"]`)
	if got := called(t, h, "github", "me", `{}`); !strings.HasPrefix(got, entrypoint.CodeInternal+": ") ||
		!strings.Contains(got, "oh") || !strings.Contains(got, `"me"`) {
		t.Errorf("got %s", got)
	}
	log.onePanic(t, "oh")
}

// TestForeignText: names and messages of servers can't write to a terminal or start lines of their
// own in what a model reads.
func TestForeignText(t *testing.T) {
	const evil = "a\x1b[2J\r\n\u202eb\u009b"
	h := hostFor(t, build(t, func(c *Config) {
		c.Upstreams = fakeUpstreams{
			tools: map[string][]upstream.Tool{"github": {{Name: evil + "1"}, {Name: evil + "2"}}},
			call: func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
				return nil, &upstream.RPCError{Code: -32050, Message: "line 1\n\tline 2" + evil}
			},
		}
	}), `["github"]`)
	for _, c := range []sandbox.Call{
		{Provider: "github", Tool: evil},
		{Provider: "github", Tool: evil + "1"},
		{Provider: evil, Tool: "x"},
		{Provider: "runtime", Tool: evil},
		{Provider: "runtime", Tool: "list_tools", Input: json.RawMessage(`{"b\u001b\u202e":1}`)},
	} {
		_, err := h.Call(t.Context(), c)
		var e *entrypoint.CallError
		if !errors.As(err, &e) {
			t.Fatalf("got %v", err)
		}
		if strings.ContainsAny(e.Message, "\x1b\r\u202e\u009b") {
			t.Errorf("%q: %q", c.Tool, e.Message)
		}
		if c.Tool == evil+"1" && !strings.Contains(e.Message, "line 1\n\tline 2") {
			t.Errorf("a readable message was changed: %q", e.Message)
		}
	}
}
