package discovery

import (
	"strings"
	"testing"
)

const (
	installedFile = "/home/u/.claude/plugins/installed_plugins.json"
	pluginRoot    = "/home/u/.claude/plugins/cache/m/p/1.0.0"
	userSettings  = "/home/u/.claude/settings.json"
	knownFile     = "/home/u/.claude/plugins/known_marketplaces.json"
	marketFile    = "/home/u/.claude/plugins/marketplaces/m/.claude-plugin/marketplace.json"
)

// installed is a home in which the plugin p of the marketplace m is installed, with these files of
// its own, and with these settings.
func installed(settings string, files tree) tree {
	all := tree{installedFile: `{"version": 2, "plugins": {"p@m": [{"scope": "user", "installPath": "` +
		pluginRoot + `", "version": "1.0.0"}]}}`, userSettings: settings,
		knownFile: `{"m": {"source": {"source": "github", "repo": "o/m"}, "installLocation": ` +
			`"/home/u/.claude/plugins/marketplaces/m"}}`,
		marketFile: `{"name": "m", "owner": {"name": "o"}, "plugins": [{"name": "p", "source": ` +
			`"./plugins/p"}, {"name": "other", "source": "./o"}]}`}
	for name, data := range files {
		if !strings.HasPrefix(name, "/") {
			name = pluginRoot + "/" + name
		}
		all[name] = data
	}
	return all
}

const on = `{"enabledPlugins": {"p@m": true}}`

// pluginEnv is what a program of the plugin p finds in its environment.
const pluginEnv = " CLAUDE_PLUGIN_DATA=/home/u/.claude/plugins/data/p-m CLAUDE_PLUGIN_ROOT=" + pluginRoot +
	" CLAUDE_PROJECT_DIR=/w/p"

// TestPlugins: the servers of an installed plugin, wherever its files have them.
func TestPlugins(t *testing.T) {
	const mcp, manifest = ".mcp.json", ".claude-plugin/plugin.json"
	for _, tt := range []scanCase{
		{"of its file", tree{mcp: `{"mcpServers": {"s": {"command": "${CLAUDE_PLUGIN_ROOT}/bin/s", ` +
			`"args": ["${CLAUDE_PLUGIN_DATA}", "${CLAUDE_PROJECT_DIR}", "${KEY}"], "env": {"ROOT": ` +
			`"${CLAUDE_PLUGIN_ROOT}"}}}}`},
			[]string{"plugin:p:s: " + pluginRoot + "/bin/s /home/u/.claude/plugins/data/p-m /w/p k" +
				pluginEnv + " ROOT=" + pluginRoot}, nil},
		{"of its file, the whole of it", tree{mcp: `{"s": {"command": "x", "env": {"CLAUDE_PLUGIN_ROOT": ` +
			`"own"}}}`},
			[]string{"plugin:p:s: x" + strings.Replace(pluginEnv, pluginRoot, "own", 1)}, nil},
		{"of its manifest", tree{manifest: `{"name": "p", "mcpServers": {"s": {"command": "x"}}}`},
			[]string{"plugin:p:s: x" + pluginEnv}, nil},
		{"of a file that its manifest names", tree{manifest: `{"name": "p", "mcpServers": ` +
			`"./conf/servers.json"}`, "conf/servers.json": `{"s": {"command": "x"}}`},
			[]string{"plugin:p:s: x" + pluginEnv}, nil},
		{"of some, of which the last counts", tree{mcp: `{"a": {"command": "a"}, "b": {"command": "b"}}`,
			"more.json": `{"mcpServers": {"b": {"command": "b2"}, "c": {"command": "c"}}}`,
			manifest: `{"name": "p", "mcpServers": ["./more.json", {"c": {"command": "c3"}}, ` +
				`"./.mcp.json", [{"d": {"command": "d"}}], 7]}`},
			[]string{"plugin:p:a: a" + pluginEnv, "plugin:p:b: b2" + pluginEnv, "plugin:p:c: c3" +
				pluginEnv}, nil},
		{"at a URL", tree{mcp: `{"s": {"type": "http", "url": "https://${KEY}/mcp", "headers": {"A": ` +
			`"${CLAUDE_PLUGIN_ROOT}"}, "headersHelper": "${CLAUDE_PLUGIN_ROOT}/token ${KEY}"}}`},
			[]string{"plugin:p:s: http https://k/mcp" + pluginEnv + " A: " + pluginRoot +
				" helper ${CLAUDE_PLUGIN_ROOT}/token ${KEY}"}, nil},
		{"a url without a type", tree{mcp: `{"s": {"url": "https://x"}}`}, nil,
			[]string{"plugin:p:s: it has a url and no type, and is skipped by Claude Code as invalid"}},
		{"a variable that isn't set", tree{mcp: `{"s": {"command": "${NO}"}}`}, nil,
			[]string{"plugin:p:s: its command needs the variable NO, which is not set here"}},
		{"a file outside of it", tree{manifest: `{"mcpServers": "../../other.json"}`}, nil,
			[]string{"/home/u/.claude/plugins/cache/m/other.json: a plugin's manifest names it, and it " +
				"lies outside the plugin"}},
		{"a bundle", tree{manifest: `{"mcpServers": ["./s.mcpb", "https://x/y.json"]}`}, nil, []string{
			pluginRoot + "/.claude-plugin/plugin.json: its mcpServers names a bundle, which Claude Code " +
				"unpacks and the bridge doesn't"}},
		{"a broken file", tree{mcp: `{"s": `, manifest: `{"mcpServers": {"t": {"command": "t"}}}`},
			[]string{"plugin:p:t: t" + pluginEnv},
			[]string{pluginRoot + "/.mcp.json: it is not valid JSON: it ends too early at line 1, column 7"}},
		{"nothing", tree{manifest: `{"name": "p", "mcpServers": null}`}, nil, nil},
		{"under the name in its manifest", tree{manifest: `{"name": "pp"}`, mcp: `{"s": {"command": "x"}}`},
			[]string{"plugin:pp:s: x" + pluginEnv}, nil},
		{"its marketplace is its manifest where it has none", tree{mcp: `{"a": {"command": "a"}}`,
			marketFile: `{"plugins": [{"name": "p", "source": "./p", "mcpServers": {"b": {"command": ` +
				`"b"}}}]}`},
			[]string{"plugin:p:a: a" + pluginEnv, "plugin:p:b: b" + pluginEnv}, nil},
		{"and isn't where it has one", tree{manifest: `{"name": "p"}`, mcp: `{"a": {"command": "a"}}`,
			marketFile: `{"plugins": [{"name": "p", "source": "./p", "mcpServers": {"b": {"command": ` +
				`"b"}}}]}`},
			[]string{"plugin:p:a: a" + pluginEnv}, nil},
		{"of a directory of the user's, where it is",
			tree{knownFile: `{"m": {"source": {"source": "directory", "path": "/src/m"}, ` +
				`"installLocation": "/src/m"}}`,
				"/src/m/.claude-plugin/marketplace.json": `{"plugins": [{"name": "p", "source": "./p"}]}`,
				"/src/m/p/.mcp.json":                     `{"s": {"command": "${CLAUDE_PLUGIN_ROOT}/s"}}`,
				mcp:                                      `{"unread": {"command": "x"}}`},
			[]string{"plugin:p:s: /src/m/p/s" + strings.Replace(pluginEnv, pluginRoot, "/src/m/p", 1)}, nil},
		{"of a directory that takes it from elsewhere",
			tree{knownFile: `{"m": {"source": {"source": "directory", "path": "/src/m"}, ` +
				`"installLocation": "/src/m"}}`,
				"/src/m/.claude-plugin/marketplace.json": `{"plugins": [{"name": "p", "source": {"source": ` +
					`"github", "repo": "o/p"}}]}`, mcp: `{"s": {"command": "x"}}`}, []string{"plugin:p:s: x" +
				pluginEnv}, nil},
		{"the bridge itself", tree{mcp: `{"s": {"command": "npx", "args": ["-y", "mcp-bridge"]}}`}, nil,
			[]string{"plugin:p:s: this is mcp-bridge itself"}},
		{"one that is configured by hand too", tree{mcp: `{"s": {"command": "npx", "args": ["x"]}, "t": ` +
			`{"type": "http", "url": "https://x"}, "u": {"command": "npx", "args": ["y"]}}`,
			"/home/u/.claude.json": `{"mcpServers": {"mine": {"command": "npx", "args": ["x"], "env": ` +
				`{"A": "b"}}, "far": {"type": "http", "url": "https://x"}}}`},
			[]string{"far: http https://x", "mine: npx x A=b", "plugin:p:u: npx y" + pluginEnv}, []string{
				"plugin:p:s: it is the same server as mine of /home/u/.claude.json (Claude Code, user), " +
					"and is used under that name",
				"plugin:p:t: it is the same server as far of /home/u/.claude.json (Claude Code, user), and " +
					"is used under that name"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, Scan(installed(on, tt.files).fs(), linux("KEY=k")), tt.servers, tt.problems)
		})
	}
}

// TestPluginsThatAreNotUsed: what is disabled, forbidden or installed for others isn't started, and
// told unless it is another project's.
func TestPluginsThatAreNotUsed(t *testing.T) {
	const (
		admin    = "/etc/claude-code/managed-settings.json"
		entries  = "/home/u/.claude.json"
		project  = "/w/p/.claude/settings.json"
		s        = "plugin:p:s: "
		trusted  = `{"projects": {"/w/p": {"hasTrustDialogAccepted": true}}}`
		notOn    = s + "its plugin p@m is not enabled in Claude Code"
		off      = s + "its plugin p@m is disabled in Claude Code, in "
		unlisted = s + "its plugin p@m is in no marketplace that Claude Code knows"
	)
	at := func(more string) string {
		return `{"plugins": {"p@m": [{"installPath": "` + pluginRoot + `"` + more + `}]}}`
	}
	for _, tt := range []struct {
		name     string
		settings string
		files    tree
		used     bool
		problem  string
	}{
		{"enabled", on, nil, true, ""},
		{"in some versions", `{"enabledPlugins": {"p@m": ["^1.0.0"]}}`, nil, true, ""},
		{"nothing said", `{}`, nil, false, notOn},
		{"another one enabled", `{"enabledPlugins": {"p@other": true, "p": true}}`, nil, false, notOn},
		{"disabled", `{"enabledPlugins": {"p@m": false}}`, nil, false, off + userSettings +
			" (Claude Code, user settings)"},
		{"disabled by the project", on, tree{project: `{"enabledPlugins": {"p@m": false}}`}, false, off +
			project + " (Claude Code, project settings)"},
		{"enabled by a project that isn't trusted", `{}`, tree{project: on}, false, notOn},
		{"by one that is", `{}`, tree{project: on, entries: trusted}, true, ""},
		{"enabled again nearer to the project", `{"enabledPlugins": {"p@m": false}}`,
			tree{"/w/p/.claude/settings.local.json": on, entries: trusted}, true, ""},
		{"a file with comments enables nothing", "// mine\n" + on, nil, false, notOn},
		{"and disables", on, tree{project: "// ours\n" + `{"enabledPlugins": {"p@m": false}}`}, false, off +
			project + " (Claude Code, project settings)"},
		{"the administrator enables", `{"enabledPlugins": {"p@m": false}}`, tree{admin: on}, true, ""},
		{"the administrator disables", on, tree{admin: `{"enabledPlugins": {"p@m": false}}`}, false, off +
			admin + " (Claude Code, managed settings)"},
		{"in any project", on, tree{installedFile: at(`, "scope": "user"`)}, true, ""},
		{"in this project", on, tree{installedFile: at(`, "scope": "local", "projectPath": "/w/p"`)}, true,
			""},
		{"in another project", on, tree{installedFile: at(`, "scope": "local", "projectPath": "/w/q"`)},
			false, ""},
		{"as it was written before", on, tree{installedFile: `{"version": 1, "plugins": {"p@m": ` +
			`{"version": "1.0.0", "installPath": "` + pluginRoot + `"}}}`}, true, ""},
		{"nowhere", on, tree{installedFile: `{"plugins": {"p@m": [{"installPath": "cache/p"}, 7], "q@m": ` +
			`7}}`}, false, ""},
		{"disabled by name", on, tree{entries: `{"projects": {"/w/p": {"disabledMcpServers": ` +
			`["plugin:p:s"]}}}`}, false,
			s + "it is disabled in /home/u/.claude.json (Claude Code, user)"},
		{"denied by name", `{"enabledPlugins": {"p@m": true}, "deniedMcpServers": [{"serverName": ` +
			`"plugin:p:s"}]}`, nil, false, s + "Claude Code's settings deny it, in " + userSettings +
			" (Claude Code, user settings)"},
		{"denied by command", `{"enabledPlugins": {"p@m": true}, "deniedMcpServers": [{"serverCommand": ` +
			`["x"]}]}`, nil, false, s + "Claude Code's settings deny it, in " + userSettings +
			" (Claude Code, user settings)"},
		{"allowed by command", `{"enabledPlugins": {"p@m": true}, "allowedMcpServers": [{"serverCommand": ` +
			`["x"]}]}`, nil, true, ""},
		{"allowed by name, which isn't one that the list takes",
			`{"enabledPlugins": {"p@m": true}, "allowedMcpServers": [{"serverName": "plugin:p:s"}]}`, nil,
			false,
			s + "Claude Code's settings don't allow it: it is not in allowedMcpServers of " + userSettings +
				" (Claude Code, user settings)"},
		{"a marketplace that isn't known", on, tree{knownFile: `{"n": {"installLocation": ` +
			`"/home/u/.claude/plugins/marketplaces/m"}}`}, false, unlisted},
		{"no marketplace known at all", on, tree{knownFile: `{}`}, false, unlisted},
		{"a marketplace that doesn't have it", on, tree{marketFile: `{"plugins": [{"name": "other"}, 7]}`},
			false, unlisted},
		{"a marketplace that isn't there", on, tree{knownFile: `{"m": {"source": {"source": "github"}, ` +
			`"installLocation": "/gone"}}`}, false, unlisted},
		{"a marketplace that can't be read", on, tree{marketFile: `{"plugins": `}, false, marketFile +
			": it is not valid JSON: it ends too early at line 1, column 13\n" + unlisted},
		{"a marketplace that takes its plugins from outside itself", on,
			tree{knownFile: `{"m": {"source": {"source": "directory"}, "installLocation": ` +
				`"/home/u/.claude/plugins/marketplaces/m"}}`,
				marketFile: `{"plugins": [{"name": "p", "source": "./../../cache/m/p/1.0.0"}]}`}, false, s +
				"where its plugin p@m lies in its marketplace can't be told"},
		{"its manifest can't be read", on, tree{".claude-plugin/plugin.json": `{"name": `}, false,
			pluginRoot + "/.claude-plugin/plugin.json: it is not valid JSON: it ends too early at line 1, " +
				"column 10\n" + s + "the manifest of its plugin p@m can't be read"},
		{"only the administrator's servers", on, tree{"/etc/claude-code/managed-mcp.json": `{}`}, false, s +
			"Claude Code's administrator allows only the servers of /etc/claude-code/managed-mcp.json " +
			"(Claude Code, managed)"},
		{"only plugins' servers", on, tree{admin: `{"strictPluginOnlyCustomization": true}`}, true, ""},
		{"only some marketplaces", on, tree{admin: `{"strictKnownMarketplaces": []}`}, false,
			s + "Claude Code's administrator limits where plugins come from, in " + admin +
				" (Claude Code, managed settings), and where this one does can't be told"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Scan(installed(tt.settings, tt.files).with(pluginRoot+"/.mcp.json",
				`{"s": {"command": "x"}}`).fs(), linux())
			servers, problems := brief(c)
			if used := len(servers) == 1; used != tt.used {
				t.Errorf("servers %q", servers)
			}
			if got := strings.Join(problems, "\n"); got != tt.problem {
				t.Errorf("problems %q, want %q", got, tt.problem)
			}
		})
	}
}

// TestPluginOptions: what the user has set for a plugin is taken from the user's own settings and
// the administrator's.
func TestPluginOptions(t *testing.T) {
	const manifest = `{"name": "p", "userConfig": {"key": {"type": "string"}, "n": {"type": "number", ` +
		`"default": 7}}, "mcpServers": {"s": {"command": "x", "args": ["${user_config.key}", ` +
		`"${user_config.n}"]}}}`
	const lacks = "plugin:p:s: its args[0] needs the plugin's option key, which isn't in Claude Code's " +
		"settings: it isn't set, or kept where nothing else can read it"
	set := func(key string) string {
		return `{"enabledPlugins": {"p@m": true}, "pluginConfigs": {"p@m": {"options": {"key": ` + key +
			`}}}}`
	}
	for _, tt := range []struct {
		name     string
		settings string
		files    tree
		servers  []string
		problems []string
	}{
		{"set", set(`"v"`), nil, []string{"plugin:p:s: x v 7" + pluginEnv}, nil},
		{"a switch", set(`true`), nil, []string{"plugin:p:s: x true 7" + pluginEnv}, nil},
		{"not set", on, nil, nil, []string{lacks}},
		{"set to nothing", set(`null`), nil, nil, []string{lacks}},
		{"set to a list", set(`["a"]`), nil, nil, []string{lacks}},
		{"set by the administrator", set(`"v"`),
			tree{"/etc/claude-code/managed-settings.json": set(`"theirs"`)},
			[]string{"plugin:p:s: x theirs 7" + pluginEnv}, nil},
		{"a project, trusted or not, sets nothing", on, tree{"/w/p/.claude/settings.json": set(`"theirs"`),
			"/home/u/.claude.json": `{"projects": {"/w/p": {"hasTrustDialogAccepted": true}}}`}, nil,
			[]string{lacks}},
		{"not in a command for the shell", set(`"v"`),
			tree{".mcp.json": `{"h": {"type": "http", "url": "https://h", "headersHelper": "token ` +
				`${user_config.key}"}}`},
			[]string{"plugin:p:s: x v 7" + pluginEnv}, []string{"plugin:p:h: its headersHelper has an " +
				"option of the plugin in it, which Claude Code doesn't take there"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, Scan(installed(tt.settings, tt.files).with(pluginRoot+"/.claude-plugin/plugin.json",
				manifest).fs(), linux()), tt.servers, tt.problems)
		})
	}
}

// TestSkillsThatArePlugins: a skill with a manifest is a plugin, the user's own at once, a
// project's after an approval that can't be read.
func TestSkillsThatArePlugins(t *testing.T) {
	files := tree{
		"/home/u/.claude/skills/mine/.claude-plugin/plugin.json": `{"name": "mine", "mcpServers": {"s": ` +
			`{"command": "${CLAUDE_PLUGIN_ROOT}/s"}}}`,
		"/home/u/.claude/skills/off/.claude-plugin/plugin.json": `{"name": "off", "mcpServers": {"s": ` +
			`{"command": "off"}}}`,
		"/home/u/.claude/skills/shy/.claude-plugin/plugin.json": `{"name": "shy", "defaultEnabled": ` +
			`false, "mcpServers": {"s": {"command": "shy"}}}`,
		"/home/u/.claude/skills/plain/SKILL.md":  "no plugin",
		"/home/u/.claude/skills/plain/.mcp.json": `{"s": {"command": "unread"}}`,
		"/w/p/.claude/skills/theirs/.claude-plugin/plugin.json": `{"name": "theirs", "mcpServers": {"s": ` +
			`{"command": "theirs"}}}`,
		userSettings: `{"enabledPlugins": {"off@skills-dir": false, "theirs@skills-dir": true}}`,
	}
	check(t, Scan(files.fs(), linux()), []string{
		"plugin:mine:s: /home/u/.claude/skills/mine/s " +
			"CLAUDE_PLUGIN_DATA=/home/u/.claude/plugins/data/mine-skills-dir " +
			"CLAUDE_PLUGIN_ROOT=/home/u/.claude/skills/mine CLAUDE_PROJECT_DIR=/w/p"},
		[]string{
			"plugin:off:s: its plugin off@skills-dir is disabled in Claude Code, in " + userSettings +
				" (Claude Code, user settings)",
			"plugin:shy:s: its plugin shy@skills-dir is not enabled in Claude Code",
			"plugin:theirs:s: Claude Code asks before it starts what a project brings along, and its " +
				"answer can't be read from outside"})
}

// TestPluginsOnWindows: with the paths that the system writes, and wherever CLAUDE_CONFIG_DIR says.
func TestPluginsOnWindows(t *testing.T) {
	const root = `D:\cc\plugins\cache\m\p\1`
	env := Env{Home: `C:\Users\u`, Dir: `C:\w\p`, GOOS: "windows", Getenv: getenv(`CLAUDE_CONFIG_DIR=D:\cc`)}
	files := tree{`D:\cc\plugins\installed_plugins.json`: `{"plugins": {"p@m": [{"installPath": ` +
		quoteJSON(root) + `, "scope": "local", "projectPath": "c:\\W\\P"}]}}`,
		root + `\.mcp.json`:   `{"s": {"command": "${CLAUDE_PLUGIN_ROOT}\\s.exe"}}`,
		`D:\cc\settings.json`: on, `D:\cc\plugins\known_marketplaces.json`: `{"m": {"installLocation": ` +
			`"D:\\cc\\m"}}`,
		`D:\cc\m\.claude-plugin\marketplace.json`: `{"plugins": [{"name": "p"}]}`}
	check(t, Scan(files.fs(), env), []string{`plugin:p:s: ` + root +
		`\s.exe CLAUDE_PLUGIN_DATA=D:\cc\plugins\data\p-m CLAUDE_PLUGIN_ROOT=` + root +
		` CLAUDE_PROJECT_DIR=C:\w\p`}, nil)
}

// TestPluginHelpers: the paths in a plugin's command line for the shell never become words of it.
func TestPluginHelpers(t *testing.T) {
	entry := func(line string) string {
		return `{"s": {"type": "http", "url": "https://h", "headersHelper": ` + quoteJSON(line) + `}}`
	}
	t.Run("the shell fills them in", func(t *testing.T) {
		env := linux()
		env.Dir = "/w/x$(touch pwned)"
		c := Scan(installed(on, tree{".mcp.json": entry(`"${CLAUDE_PROJECT_DIR}/tok"`),
			"/home/u/.claude.json": `{"projects": {"/w/x$(touch pwned)": {"hasTrustDialogAccepted": ` +
				`true}}}`}).fs(), env)
		check(t, c, []string{"plugin:p:s: http https://h" + strings.Replace(pluginEnv, "/w/p", env.Dir, 1) +
			` helper "${CLAUDE_PROJECT_DIR}/tok"`}, nil)
	})
	for _, tt := range []struct{ name, dir, line, helper string }{
		{"windows has no such variables", `C:\w\a b`, `"${CLAUDE_PROJECT_DIR}\tok" ${KEY}`,
			`"C:\w\a b\tok" ${KEY}`},
		{"windows, a command in a path", `C:\w\a&calc`, `"${CLAUDE_PROJECT_DIR}\tok"`, ""},
		{"windows, a variable in a path", `C:\w\%X%`, `"${CLAUDE_PROJECT_DIR}\tok"`, ""},
		{"windows, a path that isn't asked for", `C:\w\a&calc`, `tok`, "tok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const root = `C:\Users\u\.claude\plugins\cache\m\p\1`
			files := tree{`C:\Users\u\.claude\plugins\installed_plugins.json`: `{"plugins": {"p@m": ` +
				`[{"installPath": ` + quoteJSON(root) + `}]}}`,
				root + `\.mcp.json`: entry(tt.line), `C:\Users\u\.claude\settings.json`: on,
				`C:\Users\u\.claude\plugins\known_marketplaces.json`: `{"m": {"installLocation": ` +
					`"C:\\m"}}`,
				`C:\m\.claude-plugin\marketplace.json`: `{"plugins": [{"name": "p"}]}`,
				`C:\Users\u\.claude.json`: `{"projects": {` +
					quoteJSON(strings.ReplaceAll(tt.dir, `\`, "/")) + `: {"hasTrustDialogAccepted": true}}}`}
			c := Scan(files.fs(), Env{Home: `C:\Users\u`, Dir: tt.dir, GOOS: "windows", Getenv: getenv()})
			if tt.helper == "" {
				check(t, c, nil, []string{"plugin:p:s: its headersHelper has CLAUDE_PROJECT_DIR in it, and " +
					"in that is a character that cmd acts on"})
				return
			}
			check(t, c, []string{"plugin:p:s: http https://h helper " + tt.helper}, nil)
		})
	}
}

// TestDeniedTools: tools that Claude Code's settings deny are hidden, by the names that they have
// there.
func TestDeniedTools(t *testing.T) {
	for _, tt := range []struct {
		name, rules string
		shown       string // of get, put and get.it; "-" where the server isn't used
	}{
		{"one", `["mcp__my_server__get"]`, "put get.it"},
		{"by a pattern", `["mcp__my_server__get*"]`, "put"},
		{"all, by its server", `["Bash(rm *)", "mcp__my_server"]`, "-"},
		{"all, by a pattern", `["mcp__my_server__*"]`, "-"},
		{"all of all servers", `["mcp__*"]`, "-"},
		{"another server's", `["mcp__my__get", "mcp__my_serve", "get"]`, "get put get.it"},
		{"with what it is called with", `["mcp__my_server__get(x)"]`, "get put get.it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, file := range []string{userSettings, "/w/p/.claude/settings.local.json",
				"/etc/claude-code/managed-settings.json"} {
				c := Scan(tree{file: `{"permissions": {"allow": ["mcp__my_server__get"], "deny": ` +
					tt.rules + `}}`, "/home/u/.claude.json": `{"mcpServers": {"my server": {"command": ` +
					`"x"}}}`}.fs(), linux())
				if tt.shown == "-" {
					check(t, c, nil, []string{"my server: Claude Code hides all of its tools"})
					continue
				}
				var shown []string
				for _, tool := range []string{"get", "put", "get.it"} {
					if c.Servers[0].Tools.Allows(tool) {
						shown = append(shown, tool)
					}
				}
				if got := strings.Join(shown, " "); got != tt.shown {
					t.Errorf("%s: shown are %q", file, got)
				}
			}
		})
	}
}
