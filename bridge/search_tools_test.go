package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// recordedLists returns the tools of the public servers that entrypoint/stubs keeps, as they listed
// them.
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

// TestSearchOfUnusableServers: where nothing is found among all servers, those that can't be used
// are named.
func TestSearchOfUnusableServers(t *testing.T) {
	servers := []discovery.Server{{Name: "one", Command: "c"}, {Name: "two", Command: "c"}}
	b := build(t, func(c *Config) {
		c.Servers = servers
		c.Upstreams = fakeUpstreams{tools: map[string][]upstream.Tool{"one": {}, "two": {}}}
		c.Problems = []discovery.Problem{
			{Server: "fs", State: discovery.Invalid, Reason: "it has neither a command nor a URL"},
			{Source: discovery.Source{Path: "/home/u/mcp.json"}, State: discovery.Broken, Reason: "no JSON"},
			{Server: "off", State: discovery.Disabled, Reason: "switched off"},
		}
	})
	nothing := `Nothing fits "list". Try other words for what the tool does, or no query to see all.`
	unusable := "\n[not searched: fs: it has neither a command nor a URL; /home/u/mcp.json: no JSON]"
	for args, want := range map[string]string{
		`{"query":"list"}`:                nothing + unusable,
		`{"query":"list","server":"one"}`: nothing,
	} {
		if got := found(t, b, args); got != want {
			t.Errorf("%s: got %s\nwant %s", args, got, want)
		}
	}
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
			`^status: validation_error — there is no server "githib" \(did you mean "github" or "git"\?\)`},
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
