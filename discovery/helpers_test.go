package discovery

import (
	"strings"
	"testing"
)

// TestOwnFiles: what isn't used of the bridge's own files has a next step that needs no host.
func TestOwnFiles(t *testing.T) {
	const dir = "/home/u/.config/mcp/servers"
	for _, tt := range []struct{ name, file, data, problem, next string }{
		{"disabled", "a.json", `{"command": "x", "disabled": true}`, "a: it is disabled there",
			`take "disabled": true, or "enabled": false, out of the entry to use it`},
		{"a command and a url", "a.json", `{"command": "x", "url": "https://x"}`, "a: it has a command and a url",
			`take one of them out, or write which one counts: "type": "stdio" or "http"`},
		{"jsonc", "a.jsonc", `{"command": "x"}`, notJSON, renameIt},
		{"yaml", "a.yaml", "command: x", notJSON, renameIt},
		{"no ending", "a", `{"command": "x"}`, notJSON, renameIt},
		{"a page", "README.md", "x", "", ""},
		{"a directory", "old/a.json", `{"command": "x"}`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Scan(tree{dir + "/" + tt.file: tt.data}.fs(), linux())
			var problems []string
			if tt.problem == notJSON {
				problems = []string{dir + "/" + tt.file + ": " + notJSON}
			} else if tt.problem != "" {
				problems = []string{tt.problem}
			}
			check(t, c, nil, problems)
			if len(c.Problems) > 0 && c.Problems[0].Next != tt.next {
				t.Errorf("next is %q, want %q", c.Problems[0].Next, tt.next)
			}
		})
	}
}

const (
	notJSON  = "it is not read: its name doesn't end in .json"
	renameIt = "rename it; what is in it has to be JSON too"
)

// TestNameOfTheHelpers: a server can't have the name under which code reaches the bridge's own
// helpers.
func TestNameOfTheHelpers(t *testing.T) {
	c := Scan(tree{"/home/u/.config/mcp/servers/a.json": `{"mcpServers": {"runtime": {"command": "x"}, ` +
		`"other": {"command": "y"}}}`}.fs(), linux())
	if len(c.Servers) != 1 || c.Servers[0].Name != "other" {
		t.Errorf("servers are %v, want only other", c.Servers)
	}
	if len(c.Problems) != 1 || c.Problems[0].Server != "runtime" ||
		!strings.Contains(c.Problems[0].Next, "another name") {
		t.Errorf("problems are %v", c.Problems)
	}
}

// TestNearlyIsolate: a key that is nearly "isolate" is no silence about it, where the key is known.
func TestNearlyIsolate(t *testing.T) {
	env := linux()
	env.ConfigPaths = []string{"/team.json"}
	c := Scan(tree{
		"/team.json": `{"mcpServers": {"one": {"command": "x", "isolated": true}, "two": ` +
			`{"command": "y"}}}`,
		"/home/u/.cursor/mcp.json": `{"mcpServers": {"three": {"command": "z", "isolated": true}}}`,
	}.fs(), env)
	if len(c.Servers) != 2 || len(c.Problems) != 1 ||
		c.Problems[0].Reason != `it has no "isolate", but a isolated` ||
		c.Problems[0].Next != `rename that to "isolate"` {
		t.Errorf("servers are %v, problems %v", c.Servers, c.Problems)
	}
}

// TestIsolate: the bridge's own files, and those that the user lists, say which server each
// principal has for itself. Hosts know no such key.
func TestIsolate(t *testing.T) {
	for path, want := range map[string]bool{
		"/home/u/.config/mcp/servers/a.json": true, "/team.json": true, "/home/u/.cursor/mcp.json": false,
	} {
		env := linux()
		env.ConfigPaths = []string{"/team.json"}
		c := Scan(tree{"/team.json": `{"mcpServers": {}}`, path: `{"mcpServers": {"one": {"command": "x", ` +
			`"isolate": true},
			"all": {"command": "y", "isolate": false}, "bad": {"command": "z", "isolate": "yes"}}}`}.fs(), env)
		isolated := map[string]bool{}
		for _, s := range c.Servers {
			isolated[s.Name] = s.Isolate
		}
		_, bad := isolated["bad"]
		if isolated["one"] != want || isolated["all"] || bad == want {
			t.Errorf("%s: %v, %v", path, isolated, c.Problems)
		}
	}
}
