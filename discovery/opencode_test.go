package discovery

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// TestOpenCodeTools: tools and permission of OpenCode's files hide tools by the names that OpenCode
// gives them.
func TestOpenCodeTools(t *testing.T) {
	const (
		user    = "/home/u/.config/opencode/opencode.json"
		project = "/w/p/opencode.json"
		servers = `"mcp": {"my server": {"type": "local", "command": ["x"]}}`
	)
	all := []string{"delete-all", "get", "get.it"}
	for _, tt := range []struct {
		name  string
		files tree
		shown []string // nil: the server isn't used
	}{
		{"nothing said", tree{}, all},
		{"one by its name", tree{user: `"tools": {"my_server_get": false}`},
			[]string{"delete-all", "get.it"}},
		{"by a pattern", tree{user: `"tools": {"my_server_get*": false}`}, []string{"delete-all"}},
		{"? is one character", tree{user: `"tools": {"my_server_get?it": false}`},
			[]string{"delete-all", "get"}},
		{"a character that names don't have there", tree{user: `"tools": {"my_server_get.it": false}`}, all},
		{"by the server's own name, which isn't the one", tree{user: `"tools": {"my server_get": false}`},
			all},
		{"of another server", tree{user: `"tools": {"my_*": true, "yours_*": false, "my_server": false}`},
			all},
		{"brackets are no class", tree{user: `"tools": {"my_server_[dg]*": false}`}, all},
		{"all", tree{user: `"tools": {"*": false}`}, nil},
		{"all of the server's", tree{user: `"tools": {"bash": true, "my_server*": false}`}, nil},
		{"all of the server's but one", tree{user: `"tools": {"my_server_*": false, "my_server_get": true}`},
			[]string{"get"}},
		{"the last one counts", tree{user: `"tools": {"my_server_get": true, "my_server_*": false}`}, nil},
		{"what isn't true", tree{user: `"tools": {"my_server_get": "yes"}`},
			[]string{"delete-all", "get.it"}},
		{"no map", tree{user: `"tools": ["my_server_get"]`}, all},
		{"permission", tree{user: `"permission": {"my_server_get*": "deny", "my_server_delete-all": "ask"}`},
			[]string{"delete-all"}},
		{"permission for all", tree{user: `"permission": "deny"`}, nil},
		{"permission that is about what a tool is called with",
			tree{user: `"permission": {"my_server_get": {"*": "deny", "x": "allow"}, ` +
				`"my_server_delete-all": {"*": "allow", "rm *": "deny"}}`},
			[]string{"delete-all", "get.it"}},
		{"permission goes on top of tools", tree{user: `"permission": {"my_server_get": "allow"}, ` +
			`"tools": {"my_server_*": false}`}, []string{"get"}},
		{"in its place", tree{user: `"permission": {"my_server_get": "allow"}, "tools": {"my_server_get": ` +
			`false, "my_server_*": false}`}, nil},
		{"edit is no tool of a server's", tree{user: `"tools": {"write": false, "edit": true}`}, all},
		{"of OPENCODE_CONFIG", tree{user: `"tools": {"my_server_get": false}`,
			"/oc.json": `"tools": {"my_server_get": true, "my_server_delete-all": false}`},
			[]string{"get", "get.it"}},
		{"a project hides more", tree{project: `"tools": {"my_server_get*": false}`,
			user: `"tools": {"my_server_delete-all": false}`}, []string{}},
		{"a project hides all", tree{project: `"tools": {"*": false}`}, nil},
		{"a project shows nothing that its user has hidden",
			tree{project: `"permission": "allow", "tools": {"*": true}`,
				user: `"tools": {"my_server_get": false}`}, []string{"delete-all", "get.it"}},
		{"comments", tree{"/w/p/opencode.jsonc": "/* x */ \"tools\": {\"my_server_get\": false},"},
			[]string{"delete-all", "get.it"}},
		{"more rules than can be kept in mind", tree{user: `"tools": {` + manyRules() + `}`}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := tree{}
			for p, data := range tt.files {
				files[p] = "{" + data + "}"
			}
			files[user] = "{" + strings.Join(slices.DeleteFunc([]string{tt.files[user], servers},
				func(s string) bool { return s == "" }), ", ") + "}"
			c := Scan(files.fs(), linux("OPENCODE_CONFIG=/oc.json"))
			if tt.shown == nil {
				last := len(c.Problems) - 1
				if len(c.Servers) > 0 || last < 0 ||
					c.Problems[last].Reason != "OpenCode hides all of its tools" ||
					c.Problems[last].State != Disabled {
					t.Errorf("got %v, %v", c.Servers, c.Problems)
				}
				if told := last == 1 && strings.Contains(c.Problems[0].Reason,
					"more than 1000 rules"); told != strings.HasPrefix(tt.name, "more rules") {
					t.Errorf("problems are %v", c.Problems)
				}
				return
			}
			if len(c.Servers) != 1 {
				t.Fatalf("got %v, %v", c.Servers, c.Problems)
			}
			shown := []string{}
			for _, tool := range all {
				if by, hidden := c.Servers[0].HiddenBy(tool); !hidden {
					shown = append(shown, tool)
				} else if by.Host != "OpenCode" {
					t.Errorf("%s is hidden by %s", tool, by)
				}
			}
			if !slices.Equal(shown, tt.shown) {
				t.Errorf("shown are %q, want %q", shown, tt.shown)
			}
		})
	}
	t.Run("on windows, in any case", func(t *testing.T) {
		files := tree{`C:\Users\u\.config\opencode\opencode.json`: `{"tools": {"S_GET": false}, "mcp": ` +
			`{"s": {"type": "local", "command": ["x"]}}}`}
		c := Scan(files.fs(), Env{Home: `C:\Users\u`, GOOS: "windows"})
		if len(c.Servers) != 1 || c.Servers[0].Tools.Allows("get") || !c.Servers[0].Tools.Allows("put") {
			t.Errorf("got %+v", c.Servers)
		}
	})
	t.Run("what is nearest to the working directory counts", func(t *testing.T) {
		env := linux()
		env.Dir = "/w/p/deep"
		files := tree{user: "{" + servers + "}", "/w/p/.git/HEAD": "",
			project:                   `{"tools": {"my_server_get": false, "my_server_put": true}}`,
			"/w/p/deep/opencode.json": `{"tools": {"my_server_get": true, "my_server_put": false}}`}
		c := Scan(files.fs(), env)
		if len(c.Servers) != 1 || !c.Servers[0].Tools.Allows("get") || c.Servers[0].Tools.Allows("put") {
			t.Errorf("got %+v", c.Servers)
		}
	})
	t.Run("another host's entry for the same server opens nothing", func(t *testing.T) {
		files := tree{"/home/u/.cursor/mcp.json": `{"mcpServers": {"cs": {"command": "x"}}}`,
			user: `{"tools": {"s_get": false}, "mcp": {"s": {"type": "local", "command": ["x"]}}}`}
		c := Scan(files.fs(), linux())
		if len(c.Servers) != 1 {
			t.Fatalf("got %v", c.Servers)
		}
		if by, hidden := c.Servers[0].HiddenBy("get"); !hidden || by.Path != user {
			t.Errorf("hidden by %s: %v", by, hidden)
		}
	})
}

func manyRules() string {
	var rules []string
	for i := range config.MaxRules + 1 {
		rules = append(rules, fmt.Sprintf(`"other_%d": true`, i))
	}
	return strings.Join(rules, ", ")
}
