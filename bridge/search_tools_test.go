package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// recordedLists returns the tools of the public servers that entrypoint/stubs keeps, as they listed them.
func recordedLists(t testing.TB) map[string][]json.RawMessage {
	t.Helper()
	paths, err := filepath.Glob("../entrypoint/stubs/testdata/servers/*.json")
	if err != nil || len(paths) != 13 {
		t.Fatalf("%d recorded servers, %v", len(paths), err)
	}
	lists := map[string][]json.RawMessage{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		lists[strings.TrimSuffix(filepath.Base(path), ".json")] = list.Tools
	}
	return lists
}

// ofServers changes a Config to servers that list some tools.
func ofServers(t testing.TB, lists map[string][]json.RawMessage) func(*Config) {
	t.Helper()
	tools := map[string][]upstream.Tool{}
	var servers []discovery.Server
	for name, list := range lists {
		servers = append(servers, discovery.Server{Name: name, Command: name})
		for _, raw := range list {
			var tool upstream.Tool
			if err := json.Unmarshal(raw, &tool); err != nil {
				t.Fatal(err)
			}
			tools[name] = append(tools[name], tool)
		}
	}
	return func(c *Config) { c.Servers, c.Upstreams = servers, fakeUpstreams{tools: tools} }
}

// found is what search_tools answers to arguments in JSON.
func found(t testing.TB, b *Bridge, args string) string {
	t.Helper()
	res := b.searchTools(t.Context(), json.RawMessage(args))
	p, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var r toolResult
	if err := json.Unmarshal(p, &r); err != nil || len(r.Content) != 1 {
		t.Fatalf("%v: %s", err, p)
	}
	return r.Content[0].Text
}

func TestSearchTools(t *testing.T) {
	b := build(t, ofServers(t, recordedLists(t)))
	for _, tc := range []struct{ name, args, want string }{
		{"names", `{"query":"create_issue","detail":"names","limit":2}`,
			"^mcp_github.create_issue\nmcp_.*\n\\[1 to 2 of \\d+; cursor=\"2\" goes on\\]$"},
		{"brief", `{"query":"create issue","limit":1}`,
			`^mcp_github.create_issue\(owner: str, .*\) -> Any\n  Create a new issue in a GitHub repository\n\[1 to ` +
				`1 of`},
		{"full", `{"query":"get_current_time","detail":"full","limit":1}`,
			`(?s)^# called as mcp_time\.<name>\(…\)\nclass .*\ndef get_current_time\(timezone: str\) -> .*Get ` +
				`current time.*\n    \.\.\.\n\[1 to 1 of`},
		{"one server", `{"query":"create branch","server":"git","detail":"names","limit":1}`,
			`^mcp_git\.git_create_branch\n`},
		{"by alias", `{"server":"mcp_time"}`, `^mcp_time\.get_current_time\nmcp_time\.convert_time$`},
		{"all", `{}`, `(?s)^mcp_context7\..*\[1 to 40 of 142; cursor="40" goes on\]$`},
		{"nothing", `{"query":"zzzzzz"}`, `^Nothing fits "zzzzzz"\. Try other words`},
		{"null counts as absent", `{"query":"create_issue","server":null,"limit":null,"detail":"names"}`,
			`^mcp_github\.create_issue\n`},
		{"number as text", `{"query":"create_issue","limit":"1","detail":"names"}`,
			"^mcp_github.create_issue\n\\["},
		{"unknown server", `{"query":"x","server":"githib"}`,
			`^status: validation_error — there is no server "githib", did you mean "github"`},
		{"wrong detail", `{"query":"x","detail":"all"}`,
			`^status: validation_error — argument "detail" is "names", "brief" or "full", not "all"`},
		{"wrong query", `{"query":["x"]}`, `^status: validation_error — argument "query" must be a string, not a ` +
			`list`},
		{"wrong limit", `{"limit":0}`, `^status: validation_error — argument "limit" must be a positive number`},
		{"wrong name", `{"q":"x"}`, `^status: validation_error — search_tools has no argument "q"`},
		{"wrong cursor", `{"query":"issue","cursor":"5000"}`,
			`^status: validation_error — argument "cursor" is of another search`},
		{"no cursor at all", `{"query":"issue","cursor":"next"}`, `^status: validation_error — argument "cursor"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := found(t, b, tc.args); !regexp.MustCompile(tc.want).MatchString(got) {
				t.Errorf("got\n%s\nwant %s", got, tc.want)
			}
		})
	}
}

// foundPage is the structured form of a page.
type foundPage struct {
	Results []foundDoc
	Total   int
	Cursor  string
}

// TestSearchForPrograms: in the structured mode there is what the text has, for programs; else only
// the text, which models read.
func TestSearchForPrograms(t *testing.T) {
	ofRecorded := ofServers(t, recordedLists(t))
	search := func(mode, args string) (text string, out foundPage) {
		b := build(t, func(c *Config) {
			ofRecorded(c)
			c.OutputMode = mode
		})
		res := b.searchTools(t.Context(), json.RawMessage(args))
		if (res.RawStructuredContent != nil) != (mode == OutputStructured) {
			t.Fatalf("in mode %s: %s", mode, res.RawStructuredContent)
		}
		if mode == OutputStructured {
			if err := json.Unmarshal(res.RawStructuredContent, &out); err != nil {
				t.Fatal(err)
			}
		}
		return res.Content[0].(mcp.TextContent).Text, out
	}
	const args = `{"query":"create issue","limit":2,"detail":"full"}`
	plain, _ := search(OutputText, args)
	text, out := search(OutputStructured, args)
	if text != plain {
		t.Errorf("the text is another one: %s", text)
	}
	if len(out.Results) != 2 || out.Total < 3 || !strings.Contains(text, fmt.Sprintf("cursor=%q", out.Cursor)) {
		t.Fatalf("got %d of %d, cursor %q", len(out.Results), out.Total, out.Cursor)
	}
	if d := out.Results[0]; d.Server != "github" || d.Tool != "create_issue" || len(d.InputSchema) == 0 ||
		!d.Allowed || d.Score <= 0 {
		t.Errorf("got %+v", d)
	}
	if _, rest := search(OutputStructured, `{"server":"time"}`); rest.Total != 2 || rest.Cursor != "" ||
		len(rest.Results) != 2 {
		t.Errorf("got %+v", rest)
	}
}

// TestSearchPages: page by page, every tool comes once.
func TestSearchPages(t *testing.T) {
	b := build(t, ofServers(t, recordedLists(t)))
	next := regexp.MustCompile(`of (\d+); cursor="([^"]+)"`)
	for _, detail := range []string{"names", "brief", "full"} {
		var names []string
		total, cursor := 0, ""
		for pages := 0; ; pages++ {
			text := found(t, b, fmt.Sprintf(`{"query":"page","detail":%q,"limit":7,"cursor":%q}`, detail, cursor))
			for _, line := range strings.Split(text, "\n") {
				switch {
				case detail == "full" && strings.HasPrefix(line, "def "):
					names = append(names, line)
				case detail != "full" && strings.HasPrefix(line, "mcp_"):
					names = append(names, line)
				}
			}
			m := next.FindStringSubmatch(text)
			if m == nil {
				break
			}
			total, _ = strconv.Atoi(m[1])
			if cursor = m[2]; pages > 100 {
				t.Fatal("there is no end")
			}
		}
		slices.Sort(names)
		if len(names) != total || total < 20 || detail == "names" && len(slices.Compact(names)) != total {
			t.Errorf("%s: %d names of %d hits", detail, len(names), total)
		}
	}
}

// TestSearchAnswerIsBounded: neither many tools nor a huge one make a long answer.
func TestSearchAnswerIsBounded(t *testing.T) {
	huge := upstream.Tool{Name: "huge_\x1b[2J", Description: strings.Repeat("<&>\x1b ", 100_000),
		InputSchema: json.RawMessage(`{"properties":{"a":{"description":"` + strings.Repeat("x", 100<<10) + `"}}}`)}
	tools := []upstream.Tool{huge}
	for i := range 300 {
		tools = append(tools, upstream.Tool{Name: fmt.Sprintf("huge_%d_%s", i, strings.Repeat("n", 200)),
			Description: strings.Repeat("x", 5000)})
	}
	b := build(t, func(c *Config) {
		c.Upstreams, c.OutputMode = fakeUpstreams{tools: map[string][]upstream.Tool{"github": tools}},
			OutputStructured
	})
	for _, detail := range []string{"names", "brief", "full"} {
		for _, query := range []string{"huge", ""} {
			args := fmt.Sprintf(`{"query":%q,"detail":%q,"limit":100000}`, query, detail)
			if raw := b.searchTools(t.Context(), json.RawMessage(args)).RawStructuredContent; len(
				raw) > 256<<10+4096 || !json.Valid(raw) {
				t.Errorf("%s of %q: %d bytes for programs", detail, query, len(raw))
			}
			text := found(t, b, args)
			if len(text) > 24<<10+4096 || !strings.Contains(text, "huge_") || strings.Contains(text, "\x1b") {
				t.Errorf("%s of %q: %d bytes: %.200q", detail, query, len(text), text)
			}
		}
	}
}

// TestSearchSeesWhatPolicyAllows: what is denied is not found.
func TestSearchSeesWhatPolicyAllows(t *testing.T) {
	p, err := policy.Parse("policy.toml", []byte("[[rule]]\ntools = [\"github.*\"]\nverdict = \"deny\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	ofRecorded := ofServers(t, recordedLists(t))
	b := build(t, func(c *Config) {
		ofRecorded(c)
		c.Policy = p
	})
	for _, args := range []string{`{"query":"create_issue","limit":200}`, `{"server":"github"}`,
		`{"limit":200}`} {
		if text := found(t, b, args); strings.Contains(text, "mcp_github") {
			t.Errorf("%s finds what is denied:\n%s", args, text)
		}
	}
	b = build(t, func(c *Config) { c.PolicyError = errors.New("policy.toml:3: there is no verdict \"maybe\"") })
	if text := found(t, b, `{"query":"issue"}`); !strings.Contains(text, "there is no verdict") ||
		strings.Contains(text, "mcp_") {
		t.Errorf("with a policy that can't be read: %s", text)
	}
}

// slowUpstreams list some servers' tools only when their context ends, and count how often they are asked.
type slowUpstreams struct {
	fakeUpstreams
	slow  func(server string) bool
	asked *atomic.Int64
	runs  func(server string) bool
}

func (s slowUpstreams) Tools(ctx context.Context, server string) ([]upstream.Tool, error) {
	s.asked.Add(1)
	if s.slow != nil && s.slow(server) {
		<-ctx.Done()
		return nil, &upstream.ServerError{Server: server, Op: "starting it", Err: ctx.Err()}
	}
	return s.fakeUpstreams.Tools(ctx, server)
}

func (s slowUpstreams) Running(_ context.Context, server string) bool {
	return s.runs != nil && s.runs(server)
}

// TestSearchDoesNotWaitForTheSlowest: servers that hang cost one wait, whatever their number, the
// next search hardly any, and the
// others are searched all the same.
func TestSearchDoesNotWaitForTheSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := slowUpstreams{asked: new(atomic.Int64), slow: func(server string) bool {
			return strings.HasPrefix(
				server, "slow")
		},
			fakeUpstreams: fakeUpstreams{tools: map[string][]upstream.Tool{"zoo": {{Name: "feed_tiger"}}}}}
		b := build(t, func(c *Config) {
			c.Upstreams, c.Servers = up, []discovery.Server{{Name: "zoo"}}
			for i := range 7 {
				c.Servers = append(c.Servers, discovery.Server{Name: fmt.Sprint("slow", i)})
			}
		})
		began := time.Now()
		text := found(t, b, `{"query":"tiger"}`)
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("the first search took %v", took)
		}
		if !strings.Contains(text, "mcp_zoo.feed_tiger") || !strings.Contains(text,
			"[not searched: slow0: it has not listed its tools in time") || !strings.Contains(text, "; and 2 more]") {
			t.Errorf("got %s", text)
		}
		began = time.Now()
		if text = found(t, b, `{"query":"tiger"}`); !strings.Contains(text, "mcp_zoo.feed_tiger") ||
			!strings.Contains(text, "slow0") {
			t.Errorf("the second time: %s", text)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the second search took %v", took)
		}
	})
}

// TestSearchOfSavedTools: what an earlier process has learned is searched and read about without
// starting anything, and is told to be
// old; what a server says now takes its place.
func TestSearchOfSavedTools(t *testing.T) {
	store := catalog.OpenStore(filepath.Join(t.TempDir(), "tools"))
	definition := discovery.Server{Name: "github", Command: "gh"}
	old := []upstream.Tool{{Name: "list-issues", Description: "List issues."}, {Name: "close-issue"}}
	if err := store.Save(definition.Identity(), catalog.List{AsOf: time.Now().Add(-50 * time.Hour),
		Tools: old}); err != nil {
		t.Fatal(err)
	}
	up := slowUpstreams{asked: new(atomic.Int64),
		fakeUpstreams: fakeUpstreams{tools: map[string][]upstream.Tool{"github": old[:1]}}}
	b := build(t, func(c *Config) {
		c.Upstreams, c.Servers, c.Tools = up, []discovery.Server{definition}, store
	})
	text := found(t, b, `{"query":"issue","detail":"names"}`)
	if !strings.Contains(text, "mcp_github.close_issue") || !strings.Contains(text,
		"[cached, the server not asked since: github (2 days old)]") {
		t.Errorf("search_tools: %s", text)
	}
	h := hostFor(t, b, `["github"]`)
	for _, tc := range []struct{ helper, input, want string }{
		{"search_tool_docs", `{"query":"close issue"}`, `"cached":true,"asOf":"20`},
		{"query_tool_docs", `{"server":"github","tool":"close_issue"}`, `"cached":true`},
		{"describe_server", `{"server":"github"}`, `"tools":["list-issues","close-issue"]`},
	} {
		if got := ask(t, h, tc.helper, tc.input); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s lacks %s", tc.helper, got, tc.want)
		}
	}
	if n := up.asked.Load(); n != 0 {
		t.Errorf("the server was started %d times to be read about", n)
	}
	got := ask(t, h, "call_tool", `{"server":"github","tool":"close-issue","arguments":{}}`)
	if !strings.Contains(got, `server "github" has no tool "close-issue" any more: the list of 2 days ago was `+
		`out of date`) {
		t.Errorf("a call of what is gone: %s", got)
	}
	if got := ask(t, h, "load_server", `{"server":"github"}`); !strings.Contains(got,
		`"gone":["close-issue","close_issue"]`) {
		t.Errorf("the guest isn't told: %s", got)
	}
	if text := found(t, b, `{"query":"issue","detail":"names"}`); strings.Contains(text, "close_issue") ||
		strings.Contains(text, "cached") {
		t.Errorf("after the server has listed its tools: %s", text)
	}
	if got := ask(t, h, "call_tool", `{"server":"github","tool":"never","arguments":{}}`); strings.Contains(got,
		"any more") {
		t.Errorf("a tool that never was: %s", got)
	}
}

// TestDeniedSince: of a tool that the policy denies by what its server says of it now, it is said
// that it is denied, not that it is gone.
func TestDeniedSince(t *testing.T) {
	up := fakeUpstreams{tools: map[string][]upstream.Tool{"github": {{Name: "purge",
		Annotations: json.RawMessage(`{"readOnlyHint":true}`)}}}}
	b := build(t, func(c *Config) {
		c.Upstreams, c.Servers, c.Policy = up, []discovery.Server{{Name: "github"}},
			policyOf(t, "[hints]\ndestructive = \"deny\"\n")
	})
	if text := found(t, b, `{}`); text != "mcp_github.purge" {
		t.Fatalf("got %s", text)
	}
	up.tools["github"] = []upstream.Tool{{Name: "purge"}}
	h := hostFor(t, b, `["github"]`)
	if got := ask(t, h, "call_tool", `{"server":"github","tool":"purge"}`); !strings.HasPrefix(got,
		`denied: tool "purge" of server "github" may not be called, by hints.destructive`) {
		t.Errorf("a call: %s", got)
	}
	if got := ask(t, h, "load_server", `{"server":"github"}`); strings.Contains(got, `"gone"`) ||
		!strings.Contains(got, `"denied":{"purge":`) {
		t.Errorf("the guest is told: %s", got)
	}
}

// TestSearchAsksWhoRuns: a server that runs says itself which tools it has, unless it takes too long.
func TestSearchAsksWhoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := false
		up := slowUpstreams{asked: new(atomic.Int64), slow: func(string) bool { return hangs },
			runs:          func(string) bool { return true },
			fakeUpstreams: fakeUpstreams{tools: map[string][]upstream.Tool{"github": {{Name: "one"}}}}}
		b := build(t, func(c *Config) { c.Upstreams, c.Servers = up, []discovery.Server{{Name: "github"}} })
		found(t, b, `{}`)
		up.tools["github"] = []upstream.Tool{{Name: "two"}}
		if text := found(t, b, `{}`); text != "mcp_github.two" {
			t.Errorf("after a change: %s", text)
		}
		hangs = true
		began := time.Now()
		if text := found(t, b, `{}`); text != "mcp_github.two" || time.Since(began) > 4*time.Second {
			t.Errorf("when it hangs: %s, after %v", text, time.Since(began))
		}
	})
}

// TestSearchStartsServersForItsClient: a server that is first started by a search is told what the
// client can be asked for.
func TestSearchStartsServersForItsClient(t *testing.T) {
	u := listingFor{fakeUpstreams: config().Upstreams.(fakeUpstreams), able: make(chan upstream.Abilities, 1)}
	b := build(t, func(c *Config) { c.Upstreams = u })
	p := connect(t, b)
	p.introduce(`{"elicitation":{}}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tools",` +
		`"arguments":{"server":"github"}}}`)
	p.next()
	if got := <-u.able; got != (upstream.Abilities{Elicitation: true}) {
		t.Errorf("the server is told of %+v", got)
	}
}

// listingFor notes for which client a server's tools are listed.
type listingFor struct {
	fakeUpstreams
	able chan upstream.Abilities
}

func (l listingFor) Tools(ctx context.Context, server string) ([]upstream.Tool, error) {
	var able upstream.Abilities
	if c := upstream.ClientOf(ctx); c != nil {
		able = c.Abilities()
	}
	l.able <- able
	return l.fakeUpstreams.Tools(ctx, server)
}
