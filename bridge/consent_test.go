package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// answer is a client's answer to a question.
func answer(word string) string {
	return fmt.Sprintf(`{"action":"accept","content":{"answer":%q}}`, word)
}

// TestAskOverTheWire is a client that is asked in the course of its call, and whose answer counts.
func TestAskOverTheWire(t *testing.T) {
	b := build(t, func(c *Config) {
		c.Policy = policyOf(t, "[[rule]]\ntools = [\"github.me\"]\nverdict = \"ask\"")
		c.Runner = fakeRunner{run: func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			res, err := h.Call(ctx, sandbox.Call{Run: r.ID, Provider: "github", Tool: "me",
				Input: json.RawMessage(`{"a":1}`)})
			return printed(fmt.Sprintf("%s %v", res, err)), nil
		}}
	})
	p := connect(t, b)
	p.introduce(`{"elicitation":{}}`)
	for i, tc := range []struct{ answer, want string }{{"once", `github.me{\"a\":1}`},
		{"no", "the user has said no, for all of this run"}} {
		p.code(i, "x")
		q := p.next()
		if q.Method != "elicitation/create" || !strings.Contains(q.Params.Message,
			`wants to call tool "me" of server "github"`) ||
			!strings.Contains(q.Params.Message, `{"a":1}`) {
			t.Fatalf("the client was asked %+v", q)
		}
		p.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answer(tc.answer))
		if got := p.next().tool(t).Content[0].Text; !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %s", tc.answer, got)
		}
	}
	silent := connect(t, b)
	silent.introduce(`{}`)
	silent.code(1, "x")
	if got := silent.next().tool(t).Content[0].Text; !strings.Contains(got,
		"mcp-bridge policy grant github.me") {
		t.Errorf("a client that can't be asked: %s", got)
	}
}

// TestAskOfADirectRun: the program's own user answers a question by yes or no, for each call;
// where no one can be asked, the denial says so.
func TestAskOfADirectRun(t *testing.T) {
	b := build(t, func(c *Config) {
		c.Policy = policyOf(t, "[[rule]]\ntools = [\"github.me\"]\nverdict = \"ask\"")
		c.Runner = fakeRunner{run: func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			var said []string
			for range 2 {
				res, err := h.Call(ctx, sandbox.Call{Run: r.ID, Provider: "github", Tool: "me",
					Input: json.RawMessage(`{"a":1}`)})
				said = append(said, fmt.Sprintf("%s %v", res, err))
			}
			return printed(r.File + " " + strings.Join(said, "; ")), nil
		}}
	})
	for _, tc := range []struct {
		name    string
		answers []bool
		want    []string
	}{
		{"yes, then no", []bool{true, false}, []string{`script.py {"content":[{"type":"text",` +
			`"text":"github.me{\"a\":1}"}]} <nil>; `, "the user has said no"}},
		{"no", []bool{false}, []string{"the user has said no, for all of this run; "}},
		{"no one to ask", nil, []string{"the user asked first, and the client can't be asked"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Direct{Code: "x", File: "script.py"}
			asked := 0
			if tc.answers != nil {
				d.Ask = func(_ context.Context, question string) (bool, error) {
					if asked++; asked > len(tc.answers) {
						t.Fatalf("question %d: %s", asked, question)
					}
					if !strings.Contains(question, `wants to call tool "me" of server "github"`) ||
						!strings.HasSuffix(question, `Arguments: {"a":1}`) {
						t.Errorf("the question is %s", question)
					}
					return tc.answers[asked-1], nil
				}
			}
			r, err := b.RunDirect(t.Context(), d)
			if err != nil || asked != len(tc.answers) {
				t.Fatalf("%v after %d questions", err, asked)
			}
			for _, want := range tc.want {
				if got := r.Result.Stdout(); !strings.Contains(got, want) {
					t.Errorf("%q is not in %s", want, got)
				}
			}
		})
	}
}

// approving holds one server until a yes.
type approving struct {
	mu     sync.Mutex
	holds  string // its name
	all    bool   // holds every server
	yes    int
	failed error
}

func (a *approving) Held(s discovery.Server) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return (a.all || s.Name == a.holds) && a.yes == 0
}

func (a *approving) Approve(discovery.Server) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.yes++
	return 0, a.failed
}

// countedUpstreams counts what reaches a server.
type countedUpstreams struct {
	fakeUpstreams
	mu      sync.Mutex
	reached []string
}

func (c *countedUpstreams) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reached = append(c.reached, what)
}

func (c *countedUpstreams) Tools(ctx context.Context, server string) ([]upstream.Tool, error) {
	c.note("tools " + server)
	return c.fakeUpstreams.Tools(ctx, server)
}

func (c *countedUpstreams) List(context.Context, string, upstream.Kind) ([]json.RawMessage, error) {
	c.note("list")
	return nil, nil
}

func (c *countedUpstreams) ReadResource(context.Context, string, string) (json.RawMessage, error) {
	c.note("read")
	return nil, nil
}

func (c *countedUpstreams) GetPrompt(context.Context, string, string, json.RawMessage) (json.RawMessage,
	error) {
	c.note("prompt")
	return nil, nil
}

func (c *countedUpstreams) Complete(context.Context, string, map[string]any) (json.RawMessage, error) {
	c.note("complete")
	return nil, nil
}

// TestHeldServer: a server that is held is listed with what it is, is in no definition of ours, and
// is reached by nothing that code can do. After a yes it is, in the same run.
func TestHeldServer(t *testing.T) {
	tools := map[string][]upstream.Tool{"github": {{Name: "me"}}}
	up := &countedUpstreams{fakeUpstreams: fakeUpstreams{tools: tools}}
	a := &approving{holds: "github"}
	b := build(t, func(c *Config) { c.Upstreams, c.Approvals = up, a })
	h := hostFor(t, b, `["github"]`)
	_, listed := b.Catalog().Announced(b.Catalog().Servers())
	if got := fmt.Sprint(listed); !strings.Contains(got, "it is not started before the user says yes") {
		t.Errorf("it is listed as %s", got)
	}
	if want := fmt.Sprintf("can call %d MCP servers", len(b.Catalog().Servers())-1); !strings.Contains(
		b.Catalog().ServersPrompt(), want) {
		t.Errorf("the prompt doesn't say %q", want)
	}
	if strings.Contains(string(b.Catalog().InputSchema(b.limits)), "github") ||
		strings.Contains(b.Catalog().Instructions(), "github") {
		t.Error("its name is in the tool's definition")
	}
	for _, q := range []struct{ provider, tool, input string }{
		{"github", "me", `{}`},
		{"runtime", "load_server", `{"server":"github"}`},
		{"runtime", "query_tool_docs", `{"server":"github"}`},
		{"runtime", "list_resources", `{"server":"github"}`},
		{"runtime", "list_resource_templates", `{"server":"github"}`},
		{"runtime", "list_prompts", `{"server":"github"}`},
		{"runtime", "read_resource", `{"server":"github","uri":"x:"}`},
		{"runtime", "get_prompt", `{"server":"github","name":"x"}`},
		{"runtime", "complete", `{"server":"github","name":"x","argument":"a"}`},
	} {
		if got := called(t, h, q.provider, q.tool, q.input); !strings.Contains(got,
			"new since the bridge started") || !strings.Contains(got, "(mcp-bridge servers approve,") {
			t.Errorf("%s.%s: %s", q.provider, q.tool, got)
		}
	}
	if len(up.reached) > 0 {
		t.Errorf("it was reached: %q", up.reached)
	}
	if _, err := a.Approve(discovery.Server{}); err != nil {
		t.Fatal(err)
	}
	if got := called(t, h, "runtime", "load_server", `{"server":"github"}`); !strings.Contains(got, `"me"`) {
		t.Errorf("after a yes: %s", got)
	}
	b.Update(config().Servers, nil)
	if !strings.Contains(string(b.Catalog().InputSchema(b.limits)), "github") {
		t.Error("after a yes its name is not in the tool's definition")
	}
}
