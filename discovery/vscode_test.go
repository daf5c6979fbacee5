package discovery

import (
	"path"
	"strings"
	"testing"
)

// TestCodeProfiles: each profile of an edition that has servers of its own has them read, where the
// edition keeps it.
func TestCodeProfiles(t *testing.T) {
	const storage = `{"userDataProfiles": [{"location": "-5a1fb8e2", "name": "Work", "icon": "briefcase"},
	{"location": "builtin/agents", "name": "Agents"},
		{"location": "3d1c", "name": "Shared", "useDefaultFlags": {"settings": true, "mcp": true}},
		{"location": "../../other", "name": "out"}, {"location": "", "name": "empty"},
		{"location": "/etc", "name": "root"}, {"location": {"path": "/x/profiles/4e2a"}, "name": "old"},
		"odd"], "profileAssociations": {"workspaces": {}}}`
	servers := func(name string) string {
		return `{"servers": {"` + name + `": {"command": "x` + name +
			`"}}}`
	}
	files := tree{}
	for p, data := range map[string]string{"globalStorage/storage.json": storage,
		"mcp.json": servers("mine"), "profiles/-5a1fb8e2/mcp.json": servers("work"),
		"profiles/builtin/agents/mcp.json": servers("agent"),
		"profiles/3d1c/mcp.json":           servers("unread"), "profiles/9f/mcp.json": servers("unread"),
		"../../other/mcp.json": servers("unread"), "profiles/mcp.json": servers("unread")} {
		files[path.Clean("/home/u/.config/Code/User/"+p)] = data
	}
	c := Scan(files.fs(), linux())
	check(t, c, []string{"agent: xagent", "mine: xmine", "work: xwork"}, nil)
	for _, s := range c.Servers {
		if s.Source.Host != "VS Code" || (s.Source.Scope == "profile") != (s.Name != "mine") {
			t.Errorf("%s", s)
		}
	}
	check(t, Scan(tree{"/home/u/.config/Code/User/globalStorage/storage.json": "{",
		"/home/u/.config/Code/User/mcp.json": servers("mine")}.fs(), linux()),
		[]string{"mine: xmine"}, []string{"/home/u/.config/Code/User/globalStorage/storage.json: it is not " +
			"valid JSON: it ends too early at line 1, column 2"})
}

// TestCodeAccess: what VS Code's settings, or its administrator's policy, say of all servers holds
// for those of that profile.
func TestCodeAccess(t *testing.T) {
	const (
		user    = "/home/u/.config/Code/User/"
		storage = `{"userDataProfiles": [{"location": "own", "name": "Own"}, {"location": "like", ` +
			`"name": "Like", "useDefaultFlags": {"settings": true}}]}`
		policy = "/etc/vscode/policy.json"
		byUser = "VS Code uses no servers: chat.mcp.access says so in " + user +
			"settings.json (VS Code, settings)"
		byPolicy = "VS Code uses no servers: its administrator's ChatMCP says so in " + policy +
			" (VS Code, policy)"
		blind = "it can't be told whether VS Code's administrator allows it: " + policy +
			" (VS Code, policy) can't be used"
		registry = "VS Code uses only servers of its registry, and which those are can't be told from " +
			"outside: chat.mcp.access says so in " + user + "settings.json (VS Code, settings)"
	)
	all := []string{"like: l", "mine: m", "own: o"}
	for _, tt := range []scanCase{
		{"nothing said", tree{}, all, nil},
		{"all", tree{user + "settings.json": `{"chat.mcp.access": "all", /* x */ }`}, all, nil},
		{"none", tree{user + "settings.json": `{"chat.mcp.access": "none"}`}, []string{"own: o"},
			[]string{"mine: " + byUser, "like: " + byUser}},
		{"of the registry only", tree{user + "settings.json": `{"chat.mcp.access": "registry"}`},
			[]string{"own: o"}, []string{"mine: " + registry, "like: " + registry}},
		{"none, as it was called before", tree{user + "settings.json": `{"chat.mcp.enabled": false}`},
			[]string{"own: o"},
			[]string{"mine: " + strings.Replace(byUser, "access", "enabled", 1), "like: " +
				strings.Replace(byUser, "access", "enabled", 1)}},
		{"the newer word counts", tree{user + "settings.json": `{"chat.mcp.enabled": false, ` +
			`"chat.mcp.access": "all"}`}, all, nil},
		{"of a profile", tree{user + "profiles/own/settings.json": `{"chat.mcp.access": "none"}`},
			[]string{"like: l", "mine: m"},
			[]string{"own: VS Code uses no servers: chat.mcp.access says so in " + user +
				"profiles/own/settings.json (VS Code, settings)"}},
		{"settings that a profile doesn't have",
			tree{user + "profiles/like/settings.json": `{"chat.mcp.access": "none"}`}, all, nil},
		{"by the administrator", tree{policy: `{"ChatMCP": "none"}`}, nil,
			[]string{"mine: " + byPolicy, "own: " + byPolicy, "like: " + byPolicy}},
		{"by the administrator, before", tree{policy: `{"ChatMCP": false}`}, nil,
			[]string{"mine: " + byPolicy, "own: " + byPolicy, "like: " + byPolicy}},
		{"the administrator's word counts", tree{policy: `{"ChatMCP": "all"}`, user +
			"settings.json": `{"chat.mcp.access": "none"}`}, all, nil},
		{"a policy that can't be read", tree{policy: `{"ChatMCP": "none"`}, nil,
			[]string{policy + ": it is not valid JSON: it ends too early at line 1, column 19", "mine: " +
				blind, "own: " + blind, "like: " + blind}},
		{"a policy of the wrong kind", tree{policy: `{"ChatMCP": ["none"]}`, user +
			"settings.json": `{"chat.mcp.access": "all"}`}, nil, []string{"mine: " + blind, "own: " +
			blind, "like: " + blind}},
		{"a policy about something else", tree{policy: `{"UpdateMode": "none"}`}, all, nil},
		{"settings that can't be read", tree{user + "settings.json": `{"chat.mcp.access": `}, all,
			[]string{user + "settings.json: it is not valid JSON: it ends too early at line 1, column 21"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := tt.files.with(user+"mcp.json",
				`{"servers": {"mine": {"command": "m"}}}`).with(user+"globalStorage/storage.json", storage).
				with(user+"profiles/own/mcp.json",
					`{"servers": {"own": {"command": "o"}}}`).with(user+"profiles/like/mcp.json",
				`{"servers": {"like": {"command": "l"}}}`)
			c := Scan(files.fs(), linux())
			check(t, c, tt.servers, tt.problems)
			for _, p := range c.Problems {
				if p.State != Denied && p.Server != "" {
					t.Errorf("%s: its state is %s", p, p.State)
				}
			}
		})
	}
	t.Run("a file that MCP_BRIDGE_CONFIG lists", func(t *testing.T) {
		env := linux()
		env.ConfigPaths = []string{user + "mcp.json"}
		check(t, Scan(tree{user + "mcp.json": `{"servers": {"mine": {"command": "m"}}}`, user +
			"settings.json": `{"chat.mcp.access": "none"}`}.fs(), env), []string{"mine: m"}, nil)
	})
	t.Run("others that have VS Code's form", func(t *testing.T) {
		env := Env{Home: `C:\Users\u`, GOOS: "windows"}
		check(t, Scan(tree{`C:\Users\u\.mcp.json`: `{"servers": {"vs": {"command": "v"}}}`,
			`C:\Users\u\settings.json`: `{"chat.mcp.access": "none"}`}.fs(), env), []string{"vs: v"}, nil)
	})
}
