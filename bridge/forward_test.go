package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// forwards is a bridge whose server asks for what the tool's arguments say, {"method", "params"},
// and answers with what it is told.
func forwards(t testing.TB, roots bool) *Bridge {
	t.Helper()
	return build(t, func(c *Config) {
		c.ShareRoots = roots
		u := c.Upstreams.(fakeUpstreams)
		u.call = func(ctx context.Context, server, _ string, args json.RawMessage) (json.RawMessage, error) {
			client := upstream.ClientOf(ctx)
			if client == nil {
				return json.RawMessage(`"no client"`), nil
			}
			var a struct {
				Method string
				Params json.RawMessage
			}
			if err := json.Unmarshal(args, &a); err != nil {
				return nil, err
			}
			if a.Method == "" {
				return json.Marshal(client.Abilities())
			}
			result, err := client.Answer(ctx, server, a.Method, a.Params)
			if err != nil {
				return json.Marshal(err.Error())
			}
			return result, nil
		}
		c.Upstreams = u
		c.Runner = fakeRunner{run: func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			raw, err := h.Call(ctx, sandbox.Call{Provider: "github", Tool: "me", Input: json.RawMessage(r.Code)})
			return printed(string(raw)), err
		}}
	})
}

func TestQuestionsAreForwarded(t *testing.T) {
	for _, tc := range []struct{ name, ask, asked, want string }{
		{"a form", `{"method":"elicitation/create","params":{"message":"Your\u001b name?\u202e",` +
			`"requestedSchema":{"type":"object","properties":{"n":{"type":"integer","default":9007199254740993}}},` +
			`"task":{},"_meta":{"progressToken":1}}}`,
			`elicitation/create {"_meta":{"mcp-bridge/server":"github"},"message":"The MCP server \"github\" asks, ` +
				`by way of mcp-bridge: Your name?","requestedSchema":{"properties":{"n":{"default":9007199254740993,` +
				`"type":"integer"}},"type":"object"}}`, `{"ok":9007199254740993}`},
		{"a model", `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}`, "",
			`"the client doesn't support sampling/createMessage (code -32601)"`},
		{"roots", `{"method":"roots/list","params":{"x":1}}`, `roots/list `, `{"ok":9007199254740993}`},
		{"a URL that was not declared", `{"method":"elicitation/create","params":{"mode":"url","message":"m",` +
			`"url":"https://example.org"}}`, "",
			`"the client can't be asked: it has not declared the capability elicitation by URL (code -32601)"`},
		{"no message", `{"method":"elicitation/create","params":{"message":5}}`, "",
			`"it has no message (code -32602)"`},
		{"no parameters", `{"method":"elicitation/create"}`, "", `"its parameters are no object (code -32602)"`},
		{"a list", `{"method":"elicitation/create","params":[1]}`, "",
			`"its parameters are no object (code -32602)"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := connect(t, forwards(t, true))
			p.introduce(`{"elicitation":{},"sampling":{},"roots":{}}`)
			p.code(1, tc.ask)
			f := p.next()
			if tc.asked != "" {
				if got := fmt.Sprintf("%s %s", f.Method, f.raw); got != tc.asked {
					t.Errorf("the client was asked\n%s, want\n%s", got, tc.asked)
				}
				p.send(`{"jsonrpc":"2.0","id":%s,"result":{"ok":9007199254740993}}`, f.ID)
				f = p.next()
			}
			if got := f.tool(t).Content[0].Text; got != tc.want {
				t.Errorf("the server was told %s, want %s", got, tc.want)
			}
		})
	}
	t.Run("a refusal", func(t *testing.T) {
		p := connect(t, forwards(t, true))
		p.introduce(`{"roots":{}}`)
		p.code(1, `{"method":"roots/list"}`)
		p.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"User rejected"}}`, p.next().ID)
		if got := p.next().tool(t).Content[0].Text; got != `"User rejected (code -1)"` {
			t.Errorf("the server was told %s", got)
		}
	})
	t.Run("a long message", func(t *testing.T) {
		p := connect(t, forwards(t, false))
		p.introduce(`{"elicitation":{}}`)
		p.code(1, `{"method":"elicitation/create","params":{"message":"`+strings.Repeat("é", 4000)+`"}}`)
		if f := p.next(); len(f.Params.Message) > 4000+100 || !strings.HasSuffix(f.Params.Message, "é […]") {
			t.Errorf("the client is shown %d bytes", len(f.Params.Message))
		}
	})
}

func TestServersAreToldWhatTheClientCan(t *testing.T) {
	for _, tc := range []struct {
		name, capabilities string
		roots              bool
		want               upstream.Abilities
	}{
		{"nothing", `{}`, true, upstream.Abilities{}},
		{"all", `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`, true,
			upstream.Abilities{Elicitation: true, ElicitationURL: true, Roots: true}},
		{"roots are not shared", `{"roots":{},"elicitation":{}}`, false, upstream.Abilities{Elicitation: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := connect(t, forwards(t, tc.roots))
			p.introduce(tc.capabilities)
			p.code(1, `{}`)
			var got upstream.Abilities
			if err := json.Unmarshal([]byte(p.next().tool(t).Content[0].Text), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if p.code(2, `{"method":"roots/list"}`); !tc.roots {
				if got := p.next().tool(t).Content[0].Text; got != `"the client's roots are not shared with servers `+
					`(code -32601)"` {
					t.Errorf("got %s", got)
				}
			}
		})
	}
	r, err := forwards(t, true).RunDirect(t.Context(), Direct{Code: `{}`})
	if err != nil || r.Result.Output[0].Text != `"no client"` {
		t.Errorf("of a run that is for no client: %+v, %v", r.Result.Output, err)
	}
}
