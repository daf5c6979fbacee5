package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func policyOf(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("policy.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// called is what a call of the guest's comes to: its result, or "code: message".
func called(t testing.TB, h *host, provider, tool, input string) string {
	t.Helper()
	res, err := h.Call(t.Context(), sandbox.Call{Run: "r", Provider: provider, Tool: tool,
		Input: json.RawMessage(input)})
	var e *entrypoint.CallError
	switch {
	case errors.As(err, &e):
		return e.Code + ": " + e.Message
	case err != nil:
		t.Errorf("an error without a code: %v", err)
	}
	return string(res)
}

// TestDeniedTools: what is denied is in nothing that code can read, and can't be called by any
// name; the rest keeps its aliases.
func TestDeniedTools(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"by the policy": func(c *Config) {
			c.Policy = policyOf(t, "[[rule]]\ntools = [\"github.list-issues\"]\nverdict = \"deny\"\nreason = \"too "+
				"many of them\"")
		},
		"by its host": func(c *Config) {
			c.Servers[0].Tools = discovery.Filter{Deny: []string{"list-issues"}}
			c.Servers[0].Source = discovery.Source{Host: "Codex", Scope: "user", Path: "/home/u/.codex/config.toml"}
		},
		"by what its host allows": func(c *Config) {
			c.Servers[0].Tools = discovery.Filter{Allow: []string{"list_issues", "me"}}
			c.Policy = policyOf(t, "[[rule]]\ntools = [\"*.*\"]\nverdict = \"allow\"")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := build(t, change)
			h := hostFor(t, b, `["github"]`)
			for _, q := range []struct{ helper, input string }{
				{"query_tool_docs", `{"server":"github","detail":"full"}`},
				{"search_tool_docs", `{"query":"list issues","detail":"full"}`},
			} {
				got := called(t, h, "runtime", q.helper, q.input)
				if strings.Contains(got, "list-issues") || strings.Contains(got, "List issues.") ||
					!strings.Contains(got, "list_issues") {
					t.Errorf("%s: %s", q.helper, got)
				}
			}
			var told entrypoint.Provider
			if err := json.Unmarshal([]byte(called(t, h, "runtime", "load_server", `{"server":"github"}`)),
				&told); err != nil {
				t.Fatal(err)
			}
			if len(told.Tools) != 2 || len(told.Denied) != 2 || told.Denied["list-issues"] == "" ||
				told.Denied["list_issues__2"] != told.Denied["list-issues"] {
				t.Errorf("the guest is told %+v", told)
			}
			for _, got := range []string{
				called(t, h, "github", "list_issues__2", `{}`), // its alias
				called(t, h, "github", "list-issues", `{}`),
				called(t, h, "runtime", "query_tool_docs", `{"server":"github","tool":"list-issues"}`),
			} {
				if !strings.HasPrefix(got, `denied: tool "list-issues" of server "github" may not be called, by `) ||
					!strings.Contains(got, "too many of them") && !strings.Contains(got, "hides it from models") {
					t.Errorf("it was called: %s", got)
				}
			}
			if got := called(t, h, "github", "list_issues", `{}`); !strings.Contains(got, "github.list_issues{}") {
				t.Errorf("the other tool: %s", got)
			}
		})
	}
}

// TestWholeServerDenied: resources and prompts are part of what a pattern for all of a server has.
func TestWholeServerDenied(t *testing.T) {
	b := build(t, func(c *Config) {
		c.Policy = policyOf(t, "[[rule]]\ntools = [\"github.*\"]\nverdict = \"deny\"")
		c.Upstreams = fakeUpstreams{tools: c.Upstreams.(fakeUpstreams).tools,
			call: func(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
				t.Error("a tool was called")
				return nil, nil
			}}
	})
	h := hostFor(t, b, `["github"]`)
	for helper, input := range map[string]string{
		"list_resources": `{"server":"github"}`, "list_resource_templates": `{"server":"github"}`,
		"list_prompts":  `{"server":"github"}`,
		"read_resource": `{"server":"github","uri":"x:y"}`, "get_prompt": `{"server":"github","name":"p"}`,
		"complete": `{"server":"github","name":"p","argument":"a"}`,
	} {
		if got := called(t, h, "runtime", helper, input); !strings.HasPrefix(got, "denied: tool ") {
			t.Errorf("%s: %s", helper, got)
		}
	}
	if got := called(t, h, "github", "me", `{}`); !strings.HasPrefix(got, "denied: tool ") {
		t.Errorf("a call: %s", got)
	}
}

// TestMethodsAreInTheManual: who denies all methods by name has them all from docs/policy.md.
func TestMethodsAreInTheManual(t *testing.T) {
	text, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	b, path := audited(t, nil)
	h := hostFor(t, b, `["github"]`)
	for helper, input := range map[string]string{
		"list_resources": `{"server":"github"}`, "list_resource_templates": `{"server":"github"}`,
		"list_prompts":  `{"server":"github"}`,
		"read_resource": `{"server":"github","uri":"x:y"}`, "get_prompt": `{"server":"github","name":"p"}`,
		"complete": `{"server":"github","name":"p","argument":"a"}`,
	} {
		_ = called(t, h, "runtime", helper, input)
	}
	records := readRecords(t, path)
	for _, r := range records {
		if !strings.Contains(string(text), "`server."+r.Tool+"`") {
			t.Errorf("docs/policy.md lacks %s", r.Tool)
		}
	}
	if len(records) != 6 {
		t.Errorf("%d records", len(records))
	}
}

// TestMethodsAreRead: by hints, they are what only reads.
func TestMethodsAreRead(t *testing.T) {
	b := build(t, func(c *Config) {
		c.Policy = policyOf(t,
			"default = \"deny\"\n[hints]\nread_only = \"allow\"")
	})
	h := hostFor(t, b, `["github"]`)
	if got := called(t, h, "runtime", "list_resources", `{"server":"github"}`); strings.Contains(got, "denied") {
		t.Error(got)
	}
	var r audit.Record
	d, _ := h.catalog.JudgeMethod("github", "prompts/list")
	list := upstream.Tool{Name: "prompts/list"}
	if err := h.permits.decide(t.Context(), &r, h.view.Allowed[0], list, nil, d); err != nil ||
		strings.Contains(r.By, "server claims") {
		t.Errorf("%v, by %s", err, r.By)
	}
	if got := called(t, h, "github", "me", `{}`); !strings.Contains(got,
		`denied: tool "me" of server "github" may not be called, by default (policy.toml, line 1)`) {
		t.Error(got)
	}
}

func TestLimitsOfARun(t *testing.T) {
	b := build(t, func(c *Config) {
		c.Policy = policyOf(t, "[[limit]]\ntools = [\"github.*\"]\ncalls = 2\nargument_bytes = 20")
	})
	h := hostFor(t, b, `["github"]`)
	var got []string
	for _, input := range []string{`{}`, `{"a":"` + strings.Repeat("x", 20) + `"}`, `{"a":1}`, `{}`} {
		code, _, _ := strings.Cut(called(t, h, "github", "me", input), ":")
		got = append(got, code)
	}
	if want := []string{`{"content"`, "call_limit", `{"content"`, "call_limit"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := called(t, hostFor(t, b, `["github"]`), "github", "me", `{}`); strings.Contains(got, "call_limit") {
		t.Errorf("another run: %s", got)
	}
}

// TestHintsOfTheMoment: what counts is what the server says at the call, not what it said when the
// tool was listed.
func TestHintsOfTheMoment(t *testing.T) {
	tools := map[string][]upstream.Tool{"github": {{Name: "x", Annotations: json.RawMessage(
		`{"readOnlyHint":true}`)}}}
	b := build(t, func(c *Config) {
		c.Policy = policyOf(t, "default = \"deny\"\n[hints]\nread_only = \"allow\"")
		c.Upstreams = fakeUpstreams{tools: tools}
	})
	h := hostFor(t, b, `["github"]`)
	if got := called(t, h, "github", "x", `{}`); !strings.Contains(got, "content") {
		t.Error(got)
	}
	tools["github"] = []upstream.Tool{{Name: "x", Annotations: json.RawMessage(`{"readOnlyHint":false}`)}}
	if got := called(t, h, "github", "x", `{}`); !strings.HasPrefix(got, "denied: ") {
		t.Error(got)
	}
}

// TestBrokenPolicy: no code runs, and the model is told what to do.
func TestBrokenPolicy(t *testing.T) {
	_, broken := policy.Parse("/etc/p.toml", []byte("defalt = 1"))
	b := build(t, func(c *Config) {
		c.PolicyError = broken
		c.Runner = fakeRunner{run: func(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
			t.Error("code was run")
			return sandbox.Result{}, nil
		}}
	})
	got := connect(t, b).call(`{"code":"1"}`)
	want := `/etc/p.toml, line 1, key defalt: there is no such key (did you mean "default"?); there are: ` +
		"default, rule, hints, limit, packages. Next: correct the file that MCP_BRIDGE_POLICY names"
	if !got.IsError || !strings.Contains(got.Content[0].Text, want) {
		t.Errorf("%+v", got)
	}
	if _, err := b.RunDirect(t.Context(), Direct{Code: "1"}); !errors.Is(err, broken) {
		t.Errorf("run: %v", err)
	}
}

// TestGrantInAnotherDirectory: what is started in the working directory is another program in
// another project.
func TestGrantInAnotherDirectory(t *testing.T) {
	s := discovery.Server{Name: "project", Transport: discovery.Stdio, Command: "python3",
		Args: []string{"tools/mcp.py"}}
	t.Chdir(t.TempDir())
	grant, key := GrantOf(s, upstream.Tool{Name: "read"}), s.Identity()
	if GrantOf(s, upstream.Tool{Name: "read"}) != grant || s.Identity() != key {
		t.Error("in the same directory it is another one")
	}
	t.Chdir(t.TempDir())
	if GrantOf(s, upstream.Tool{Name: "read"}) == grant || s.Identity() == key {
		t.Error("in another directory the grant, or what is known of its tools, is the same")
	}
}
