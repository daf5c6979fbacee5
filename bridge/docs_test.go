package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/stubs"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func (f fakeUpstreams) List(_ context.Context, server string, kind upstream.Kind) ([]json.RawMessage, error) {
	switch {
	case f.tools[server] == nil:
		return nil, errors.New("starting it: exec: no such file")
	case kind == upstream.ResourceTemplates:
		return nil, nil
	case kind == upstream.Resources:
		return []json.RawMessage{json.RawMessage(`{"uri":"a:1"}`)}, nil
	}
	return []json.RawMessage{json.RawMessage(`{"name":"p"}`)}, nil
}

func (f fakeUpstreams) ReadResource(_ context.Context, server, uri string) (json.RawMessage, error) {
	if uri != "a:1" {
		return nil, &upstream.RPCError{Code: codeInvalidParams, Message: "there is no " + uri}
	}
	return json.RawMessage(`{"contents":[{"uri":"a:1","text":"` + server + `"}]}`), nil
}

func (f fakeUpstreams) Complete(_ context.Context, server string, params map[string]any) (json.RawMessage,
	error) {
	return json.Marshal(map[string]any{"completion": map[string]any{"values": []any{server, params}}})
}

func (f fakeUpstreams) GetPrompt(_ context.Context, server, name string, args json.RawMessage) (
	json.RawMessage, error) {
	if name != "p" {
		return nil, &upstream.RPCError{Code: codeInvalidParams, Message: "there is no " + name}
	}
	return json.RawMessage(fmt.Sprintf(`{"messages":[%q,%q,%s]}`, server, name, args)), nil
}

// ask has the runtime's helper answer; an error is given as "code: message".
func ask(t *testing.T, h *host, helper, input string) string {
	t.Helper()
	res, err := h.Call(t.Context(), sandbox.Call{Provider: "runtime", Tool: helper,
		Input: json.RawMessage(input)})
	if err == nil {
		return string(res)
	}
	var e *entrypoint.CallError
	if !errors.As(err, &e) {
		t.Fatalf("an error without a code: %v", err)
	}
	return e.Code + ": " + e.Message
}

func TestOffers(t *testing.T) {
	h := hostFor(t, build(t, nil), `["github","broken"]`)
	for _, tc := range []struct{ name, helper, input, want string }{
		{"resources", "list_resources", `{"server":"github"}`, `[{"uri":"a:1"}]`},
		{"none", "list_resource_templates", `{"server":"github"}`, `[]`},
		{"prompts", "list_prompts", `{"server":"github"}`, `[{"name":"p"}]`},
		{"read", "read_resource", `{"server":"mcp_github","uri":"a:1"}`,
			`{"contents":[{"uri":"a:1","text":"github"}]}`},
		{"read nothing", "read_resource", `{"server":"github"}`,
			`validation_error: a resource is read by its uri; runtime.list_resources("github") has those that ` +
				`server lists`},
		{"read what isn't there", "read_resource", `{"server":"github","uri":"b"}`,
			`validation_error: server "github": there is no b (code -32602); runtime.list_resources("github") ` +
				`says which there are`},
		{"a prompt that isn't there", "get_prompt", `{"server":"github","name":"q"}`,
			`validation_error: server "github": there is no q (code -32602); runtime.list_prompts("github") says ` +
				`which there are`},
		{"prompt", "get_prompt", `{"server":"github","name":"p","arguments":{"a":"1"}}`,
			`{"messages":["github","p",{"a":"1"}]}`},
		{"completion of a prompt", "complete", `{"server":"github","name":"p","argument":"a","value":"x"}`,
			`{"completion":{"values":["github",{"argument":{"name":"a","value":"x"},"ref":{"name":"p",` +
				`"type":"ref/prompt"}}]}}`},
		{"completion of a template", "complete", `{"server":"github","uri":"x:{a}","argument":"a","value":"",` +
			`"arguments":{"b":"1"}}`,
			`{"completion":{"values":["github",{"argument":{"name":"a","value":""},` +
				`"context":{"arguments":{"b":"1"}},"ref":{"type":"ref/resource","uri":"x:{a}"}}]}}`},
		{"completion of nothing", "complete", `{"server":"github","argument":"a"}`,
			`validation_error: completions are asked for with the name of a prompt, or the uri of a resource ` +
				`template, and the argument's name`},
		{"another server's completion", "complete", `{"server":"My Files!","name":"p","argument":"a"}`,
			`denied: server "My Files!" is not part of this call; name it in run_python's argument servers, or ` +
				`leave that out`},
		{"prompt without a name", "get_prompt", `{"server":"github"}`,
			`validation_error: a prompt is asked for by its name; runtime.list_prompts("github") has those of that ` +
				`server`},
		{"prompt with a list", "get_prompt", `{"server":"github","name":"p","arguments":[1]}`,
			`validation_error: a tool's arguments must be an object, not a list`},
		{"another server", "list_resources", `{"server":"My Files!"}`,
			`denied: server "My Files!" is not part of this call; name it in run_python's argument servers, or ` +
				`leave that out`},
		{"another server's resource", "read_resource", `{"server":"My Files!","uri":"a:1"}`,
			`denied: server "My Files!" is not part of this call; name it in run_python's argument servers, or ` +
				`leave that out`},
		{"another server's prompt", "get_prompt", `{"server":"My Files!","name":"p"}`,
			`denied: server "My Files!" is not part of this call; name it in run_python's argument servers, or ` +
				`leave that out`},
		{"doesn't start", "list_prompts", `{"server":"broken"}`,
			`tool_error: server "broken": starting it: exec: no such file`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := ask(t, h, tc.helper, tc.input); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestQueryToolDocs(t *testing.T) {
	b := build(t, nil)
	h := hostFor(t, b, `["github"]`)
	const listIssues = `[{"server":"github","serverAlias":"github","tool":"list-issues",` +
		`"toolAlias":"list_issues__2",` +
		`"signature":"mcp_github.list_issues__2(**kwargs: Any) -\u003e Any","description":"List issues.",` +
		`"allowed":true`
	for _, tc := range []struct{ name, input, want string }{
		{"one", `{"server":"github","tool":"list-issues"}`, listIssues + `}]`},
		{"in full", `{"server":"mcp_github","tool":"list_issues__2","detail":"full"}`, listIssues +
			`,"inputSchema":{"type":"object"}}]`},
		{"unknown tool", `{"server":"github","tool":"list-isues"}`,
			`validation_error: server "github" has no tool "list-isues" (did you mean "list-issues" or ` +
				`"list_issues"?); it has: "list-issues", "list_issues", "me"`},
		{"unknown detail", `{"server":"github","detail":"all"}`,
			`validation_error: detail is "summary" or "full", not "all"`},
		{"another server, not known", `{"server":"My Files!"}`,
			`denied: server "My Files!" is not part of this call; name it in run_python's argument servers, or ` +
				`leave that out`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := ask(t, h, "query_tool_docs", tc.input); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	ask(t, hostFor(t, b, `["My Files!"]`), "load_server", `{"server":"My Files!"}`)
	if got := ask(t, h, "query_tool_docs", `{"server":"My Files!"}`); !strings.Contains(got, `"tool":"read"`) ||
		!strings.Contains(got, `"allowed":false`) {
		t.Errorf("of a server that another run has listed: %s", got)
	}
}

// foundDoc is as much of a tool's documentation as the tests look at.
type foundDoc struct {
	Server, Tool string
	Score        float64
	Allowed      bool
	InputSchema  json.RawMessage
}

// unsearched is a server that a search could not look at.
type unsearched struct{ Server, Reason string }

func TestSearchToolDocs(t *testing.T) {
	h := hostFor(t, build(t, nil), `["github","broken"]`)
	var got struct {
		Results []foundDoc
		Unknown []unsearched
	}
	if err := json.Unmarshal([]byte(ask(t, h, "search_tool_docs", `{"query":"Issues, listed","limit":1}`)),
		&got); err != nil {
		t.Fatal(err)
	}
	if len(got.Results) != 1 || got.Results[0].Tool != "list-issues" || got.Results[0].Score <= 0 {
		t.Errorf("got %+v", got.Results)
	}
	want := []unsearched{{"My Files!", "it isn't part of this call, and its tools are not known yet"},
		{"broken", "starting it: exec: no such file"}}
	if diff := cmp.Diff(want, got.Unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	for _, tc := range []struct{ input, want string }{
		{`{"query":" "}`, `validation_error: a search needs a query`},
		{`{"query":"x","limit":"5"}`, `validation_error: bad arguments for runtime.search_tool_docs`},
		{`{"query":"zzzz"}`, `{"results":[],`},
	} {
		if got := ask(t, h, "search_tool_docs", tc.input); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %s", tc.input, got)
		}
	}
}

// panickingUpstreams have a server whose tools can't be listed without a panic.
type panickingUpstreams struct {
	fakeUpstreams
	server string
}

func (p panickingUpstreams) Tools(ctx context.Context, server string) ([]upstream.Tool, error) {
	if server == p.server {
		panic("a list gone wrong")
	}
	return p.fakeUpstreams.Tools(ctx, server)
}

// TestSearchSurvivesAPanic: what goes wrong with one server is that server's reason, and the others
// are searched.
func TestSearchSurvivesAPanic(t *testing.T) {
	h := hostFor(t, build(t, func(c *Config) {
		c.Upstreams = panickingUpstreams{c.Upstreams.(fakeUpstreams), "broken"}
	}), `["github","broken"]`)
	got := ask(t, h, "search_tool_docs", `{"query":"list issues"}`)
	if !strings.Contains(got, `"tool":"list-issues"`) || !strings.Contains(got,
		`{"server":"broken","reason":"the bridge has failed on its tools`) {
		t.Errorf("got %s", got)
	}
}

// TestSearchEndsWithItsCall: it minds its context at each step.
func TestSearchEndsWithItsCall(t *testing.T) {
	h := hostFor(t, build(t, nil), `["github"]`)
	ask(t, h, "load_server", `{"server":"github"}`)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, helper := range []struct{ name, input string }{{"search_tool_docs", `{"query":"issues"}`},
		{"query_tool_docs", `{"server":"github"}`}} {
		_, err := h.Call(ended, sandbox.Call{Provider: "runtime", Tool: helper.name,
			Input: json.RawMessage(helper.input)})
		var e *entrypoint.CallError
		if !errors.As(err, &e) || e.Code != entrypoint.CodeCancelled {
			t.Errorf("%s: got %v, want cancelled", helper.name, err)
		}
	}
}

func TestLoadServer(t *testing.T) {
	var got entrypoint.Provider
	if err := json.Unmarshal([]byte(ask(t, hostFor(t, build(t, nil), `["github"]`), "load_server",
		`{"server":"github"}`)), &got); err != nil {
		t.Fatal(err)
	}
	want := entrypoint.Provider{Name: "github", Alias: "github", Description: "Issues and\npulls",
		Tools: map[string]entrypoint.Tool{
			"list_issues__2": {SafeName: "list_issues__2", OriginalName: "list-issues", Description: "List issues.",
				InputSchema: json.RawMessage(`{"type":"object"}`)},
			"list_issues": {SafeName: "list_issues", OriginalName: "list_issues"},
			"me":          {SafeName: "me", OriginalName: "me"},
		}}
	stubs.Declare(&want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOddTools: no schema, however large, loses its tool, and what a guest is told of a server fits
// into a frame.
func TestOddTools(t *testing.T) {
	large := json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", 10<<20) + `"}`)
	medium := json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", 900<<10) + `"}`)
	tools := []upstream.Tool{{Name: "large", InputSchema: large, Description: strings.Repeat("ä", 1<<20)},
		{Name: "odd", InputSchema: json.RawMessage(`true`)}}
	for i := range 10 {
		tools = append(tools, upstream.Tool{Name: fmt.Sprint("medium", i), InputSchema: medium})
	}
	h := hostFor(t, build(t, func(c *Config) {
		c.Upstreams = fakeUpstreams{tools: map[string][]upstream.Tool{"github": tools}}
	}), `["github"]`)
	answer := ask(t, h, "load_server", `{"server":"github"}`)
	var p entrypoint.Provider
	if err := json.Unmarshal([]byte(answer), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Tools) != len(tools) || len(answer) > 12<<20 {
		t.Errorf("%d of %d tools in %d bytes", len(p.Tools), len(tools), len(answer))
	}
	if p.Tools["large"].InputSchema != nil || string(p.Tools["odd"].InputSchema) != "true" ||
		p.Tools["medium9"].InputSchema == nil {
		t.Error("not the schemas that fit were sent")
	}
	for name, tool := range p.Tools {
		if !strings.Contains(tool.Stub, "\ndef "+name+"(") {
			t.Errorf("%s is declared as %q", name, tool.Stub)
		}
	}
}

// TestLoadServerFits: whatever the parts of a server's tools are like, what the guest is told of
// them is a frame with the tools in it, or an error.
func TestLoadServerFits(t *testing.T) {
	escaped := func(n int) string { return strings.Repeat("<", n) } // six bytes each in JSON
	for _, tc := range []struct {
		name  string
		tools int
		tool  func(i int) upstream.Tool
		fails bool
	}{
		{"long descriptions", 1100, func(i int) upstream.Tool {
			return upstream.Tool{Name: fmt.Sprint("t", i), Description: strings.Repeat("x ", 8<<10)}
		}, false},
		{"descriptions that are escaped", 1100, func(i int) upstream.Tool {
			return upstream.Tool{Name: fmt.Sprint("t", i), Description: escaped(16 << 10)}
		}, false},
		{"schemas that are escaped", 40, func(i int) upstream.Tool {
			return upstream.Tool{Name: fmt.Sprint("t", i), InputSchema: json.RawMessage(`{"title":"` +
				escaped(150<<10) + `"}`)}
		}, false},
		{"ten thousand tools", 10_000, func(i int) upstream.Tool {
			return upstream.Tool{Name: fmt.Sprint("a_tool_with_a_name_of_usual_length_", i),
				Description: strings.Repeat("x ", 1000), InputSchema: json.RawMessage(
					`{"properties":{"a":{"type":"string"}}}`)}
		}, false},
		{"names too long for any frame", 20, func(i int) upstream.Tool {
			return upstream.Tool{Name: fmt.Sprint(i, escaped(1<<20))}
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if testing.Short() && tc.tools > 1000 {
				t.Skip("takes long with the race detector; make test-all runs it")
			}
			var tools []upstream.Tool
			for i := range tc.tools {
				tools = append(tools, tc.tool(i))
			}
			h := hostFor(t, build(t, func(c *Config) {
				c.Upstreams = fakeUpstreams{tools: map[string][]upstream.Tool{"github": tools}}
			}), `["github"]`)
			answer := ask(t, h, "load_server", `{"server":"github"}`)
			var p entrypoint.Provider
			err := json.Unmarshal([]byte(answer), &p)
			if tc.fails {
				if !strings.HasPrefix(answer, `validation_error: the names of server "github"'s tools are longer`) {
					t.Errorf("got %.200s", answer)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v: %.200s", err, answer)
			}
			if len(answer) > 12<<20 || len(p.Tools) != tc.tools {
				t.Errorf("%d of %d tools in %d bytes", len(p.Tools), tc.tools, len(answer))
			}
		})
	}
}
