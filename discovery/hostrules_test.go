package discovery

import (
	"slices"
	"strings"
	"testing"
)

// TestAmpPermissions: servers that Amp blocks aren't used; in each file the first rule that matches
// counts.
func TestAmpPermissions(t *testing.T) {
	const user, workspace, admin = "/home/u/.config/amp/settings.json", "/w/p/.amp/settings.json",
		"/etc/ampcode/managed-settings.json"
	const blocked, unclear = "Amp blocks it, in ", "it can't be told whether Amp blocks it: "
	with := func(rules string) string {
		return `{"amp.mcpServers": {"local": {"command": "npx", "args": ["-y", "@m/server-files@1", ` +
			`"$HOME"]}, "far": {"url": "https://far.example.com/mcp"}}, "amp.mcpPermissions": ` + rules + `}`
	}
	for _, tt := range []struct {
		name     string
		files    tree
		used     []string
		problems string // of each that isn't used
	}{
		{"no rules", tree{user: with(`[]`)}, []string{"far", "local"}, ""},
		{"all programs", tree{user: with(`[{"matches": {"command": "*"}, "action": "reject"}]`)},
			[]string{"far"}, blocked + user},
		{"all URLs", tree{user: with(`[{"matches": {"url": "*"}, "action": "reject"}]`)}, []string{"local"},
			blocked + user},
		{"the first counts", tree{user: with(`[{"matches": {"command": "npx", "args": "* @m/server-*"}, ` +
			`"action": "allow"}, {"matches": {"command": "*"}, "action": "reject"}]`)}, []string{"far",
			"local"}, ""},
		{"in this order", tree{user: with(`[{"matches": {"command": "*"}, "action": "reject"}, ` +
			`{"matches": {"command": "npx"}, "action": "allow"}]`)}, []string{"far"}, blocked + user},
		{"by its arguments", tree{user: with(`[{"matches": {"command": "npx", "args": "*server-files*"}, ` +
			`"action": "reject"}]`)}, []string{"far"}, blocked + user},
		{"by other arguments", tree{user: with(`[{"matches": {"command": "npx", "args": "*other*"}, ` +
			`"action": "reject"}]`)}, []string{"far", "local"}, ""},
		{"by its whole line", tree{user: with(`[{"matches": {"command": "npx -y @m/*"}, "action": ` +
			`"reject"}]`)}, []string{"far"}, blocked + user},
		{"an expression", tree{user: with(`[{"matches": {"url": "/^https:..far/"}, "action": "reject"}]`)},
			[]string{"local"}, blocked + user},
		{"an expression that Go doesn't have", tree{user: with(`[{"matches": {"url": "/(?=x)/"}, ` +
			`"action": "reject"}]`)}, []string{"local"}, blocked + user},
		{"one that would allow", tree{user: with(`[{"matches": {"url": "/(?=x)/"}, "action": "allow"}, ` +
			`{"matches": {"url": ["x", "*"]}, "action": "reject"}]`)}, []string{"local"}, blocked + user},
		{"a rule that isn't understood", tree{user: with(`[{"matches": {"name": "local"}, "action": ` +
			`"reject"}]`)}, nil, unclear + "rule 1"},
		{"another action", tree{user: with(`[{"matches": {"command": "*"}, "action": "ask"}]`)}, nil,
			unclear + "rule 1"},
		{"no list", tree{user: with(`{}`)}, nil, unclear},
		{"a project's", tree{user: with(`[]`), workspace: `{"amp.mcpPermissions": [{"matches": {"url": ` +
			`"*"}, "action": "reject"}]}`}, []string{"local"}, blocked + workspace},
		{"a project shows nothing", tree{user: with(`[{"matches": {"url": "*"}, "action": "reject"}]`),
			workspace: `{"amp.mcpPermissions": [{"matches": {"url": "*"}, "action": "allow"}]}`},
			[]string{"local"}, blocked + user},
		{"the administrator's", tree{user: with(`[]`),
			admin: `{"amp.mcpPermissions": [{"matches": {"command": "*"}, "action": "reject"}]}`},
			[]string{"far"}, blocked + admin},
		{"an administrator's that is broken", tree{user: with(`[]`), admin: `{`}, nil,
			"it can't be told whether Amp's administrator allows it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Scan(tt.files.fs(), linux())
			var used []string
			for _, s := range c.Servers {
				used = append(used, s.Name)
			}
			if !slices.Equal(used, tt.used) {
				t.Errorf("used: %v, want %v", used, tt.used)
			}
			for _, p := range c.Problems {
				if p.Server != "" && !strings.HasPrefix(p.Reason, tt.problems) || p.Server != "" &&
					p.State != Denied {
					t.Errorf("got %v, want %s", p, tt.problems)
				}
			}
		})
	}
}

// TestHiddenTools: a tool that settings hide can't be called, and the file that says so is named.
func TestHiddenTools(t *testing.T) {
	const (
		amp, ampProject     = "/home/u/.config/amp/settings.json", "/w/p/.amp/settings.jsonc"
		claude, settings    = "/home/u/.claude.json", "/home/u/.claude/settings.json"
		local               = "/w/p/.claude/settings.local.json"
		openCode, ocManaged = "/home/u/.config/opencode/opencode.json", "/etc/opencode/opencode.jsonc"
		ampServer           = `"amp.mcpServers": {"s": {"command": "x"}}`
		claudeServer        = `{"mcpServers": {"s": {"command": "x"}}}`
		openCodeServer      = `"mcp": {"s": {"type": "local", "command": ["x"]}}`
	)
	for _, tt := range []struct {
		name  string
		files tree
		by    map[string]string // tool → the file that hides it; empty: it isn't hidden
	}{
		{"Amp, by the name that Amp gives it", tree{amp: `{` + ampServer +
			`, "amp.tools.disable": ["mcp__s__safe", "builtin:other"]}`}, map[string]string{"safe": amp,
			"other": ""}},
		{"Amp, by its own", tree{amp: `{` + ampServer + `, "amp.tools.disable": ["browser_*", "a.b"]}`},
			map[string]string{"browser_click": amp, "a.b": amp, "safe": ""}},
		{"Amp, only some", tree{amp: `{` + ampServer + `, "amp.tools.enable": ["mcp__s__r*"]}`},
			map[string]string{"read": "", "write": amp}},
		{"Amp, rejected", tree{amp: `{` + ampServer +
			`, "amp.permissions": [{"tool": "mcp__s__get", "action": "allow"}, {"tool": "mcp__s__*", ` +
			`"action": "reject"}]}`}, map[string]string{"get": "", "put": amp}},
		{"Amp, asked about, or by arguments", tree{amp: `{` + ampServer +
			`, "amp.permissions": [{"tool": "mcp__*", "action": "ask"}, {"tool": "*", "matches": {"cmd": ` +
			`"rm"}, "action": "reject"}]}`}, map[string]string{"get": ""}},
		{"Amp, by the project", tree{amp: `{` + ampServer + `}`,
			ampProject: `{"amp.tools.disable": ["put"]}`}, map[string]string{"put": ampProject, "get": ""}},
		{"Claude Code, by the user's settings", tree{claude: claudeServer,
			settings: `{"permissions": {"deny": ["mcp__s__danger"]}}`},
			map[string]string{"danger": settings, "safe": ""}},
		{"Claude Code, by the project's", tree{claude: claudeServer,
			settings: `{"permissions": {"deny": ["mcp__s__danger"]}}`, local: `{"permissions": {"deny": ` +
				`["mcp__s__other"]}}`},
			map[string]string{"danger": settings, "other": local, "safe": ""}},
		{"OpenCode", tree{openCode: `{` + openCodeServer + `, "tools": {"s_put": false}}`},
			map[string]string{"put": openCode, "get": ""}},
		{"OpenCode, by the administrator", tree{openCode: `{` + openCodeServer +
			`, "tools": {"s_put": false}}`, ocManaged: `{"permission": {"s_get": "deny"}}`},
			map[string]string{"put": openCode, "get": ocManaged, "list": ""}},
		{"OpenCode, shown by the administrator", tree{openCode: `{` + openCodeServer +
			`, "tools": {"s_put": false}}`, ocManaged: `{"permission": {"s_put": "allow"}}`},
			map[string]string{"put": openCode}},
		{"a filter of the entry", tree{amp: `{"amp.mcpServers": {"s": {"command": "x", "includeTools": ` +
			`["read"]}}, "amp.tools.disable": ["read_all"]}`}, map[string]string{"write": amp, "read": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Scan(tt.files.fs(), linux())
			if len(c.Servers) != 1 {
				t.Fatalf("got %v", c)
			}
			for tool, want := range tt.by {
				if by, hidden := c.Servers[0].HiddenBy(tool); by.Path != want || hidden != (want != "") {
					t.Errorf("%s is hidden by %v, want %q", tool, by, want)
				}
			}
		})
	}
}

// TestSwitches: what else hosts keep back, and what they don't.
func TestSwitches(t *testing.T) {
	const (
		openCode, ocManaged  = "/home/u/.config/opencode/opencode.json", "/etc/opencode/opencode.json"
		copilotUser, config  = "/home/u/.copilot/mcp-config.json", "/home/u/.copilot/config.json"
		project              = "/w/p/.mcp.json"
		server               = `{"mcpServers": {"s": {"command": "x"}}}`
		openCodeServer       = `{"mcp": {"s": {"type": "local", "command": ["x"]}}}`
		claude, mine         = "/home/u/.claude.json", "/home/u/.config/mcp/servers/mine.json"
		notYet, notToldTrust = "s: it is not yet approved in Claude Code", "s: Copilot CLI isn't told to " +
			"trust this folder"
	)
	for _, tt := range []struct {
		name     string
		files    tree
		used     bool
		problems []string
	}{
		{"OpenCode, by the administrator", tree{openCode: openCodeServer,
			ocManaged: `{"mcp": {"s": {"enabled": false}}}`}, false,
			[]string{"s: it has no command", "s: it is disabled in " +
				ocManaged + " (OpenCode, managed)"}},
		{"OpenCode, a broken file of the administrator's", tree{openCode: openCodeServer, ocManaged: `{`},
			false,
			[]string{ocManaged + ": it is not valid JSON: it ends too early at line 1, column 2",
				"s: OpenCode hides all of its tools"}},
		{"OpenCode, the project's directory", tree{"/w/p/.opencode/opencode.json": openCodeServer}, false,
			[]string{"s: the bridge doesn't start what a project brings along unless its user has said so, " +
				"and OpenCode doesn't ask"}},
		{"Copilot CLI, switched off", tree{copilotUser: server, config: `{"disabledMcpServers": ["s"]}`},
			false, []string{"s: it is disabled in " + config + " (Copilot CLI, settings)"}},
		{"Copilot CLI, no tools", tree{copilotUser: `{"mcpServers": {"s": {"command": "x", "tools": []}}}`},
			false, []string{"s: its tools is empty, so that Copilot CLI lets a model use none of its tools"}},
		{"Copilot CLI, a folder that it trusts", tree{project: server,
			config: `{"trusted_folders": ["/w/p"]}`}, true, nil},
		{"Copilot CLI, by the newer name", tree{project: server,
			"/home/u/.copilot/settings.json": `{"trustedFolders": ["/w"]}`}, true, nil},
		{"Copilot CLI, another folder", tree{project: server,
			config: `{"trusted_folders": ["/w/pq", "/w/p/deep"]}`}, false, []string{notYet}},
		{"Copilot CLI, a repository above the folder", tree{"/w/.github/mcp.json": server,
			"/w/.mcp.json": server, "/w/.git/HEAD": "", config: `{"trusted_folders": ["/w/p"]}`}, false,
			[]string{notYet, "s: Copilot CLI isn't told to trust /w"}},
		{"Copilot CLI, its own file", tree{"/w/p/.github/mcp.json": server, config: `{}`}, false,
			[]string{notToldTrust}},
		{"used by the user's own file, and disabled in the host's",
			tree{mine: server, claude: `{"mcpServers": {"s": {"command": "x"}}, "projects": {"/w/p": ` +
				`{"disabledMcpServers": ["s"]}}}`}, true, nil},
		{"another one of its name is said", tree{mine: server,
			claude: `{"mcpServers": {"s": {"command": "y"}}, "projects": {"/w/p": {"disabledMcpServers": ` +
				`["s"]}}}`}, true,
			[]string{"s: it is disabled in " + claude +
				" (Claude Code, user)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Scan(tt.files.fs(), linux())
			_, problems := brief(c)
			if (len(c.Servers) == 1) != tt.used || !slices.Equal(problems, tt.problems) {
				t.Errorf("used %v, want %v; problems %q, want %q", c.Servers, tt.used, problems, tt.problems)
			}
		})
	}
}

// TestUnread: files that hold servers and aren't read are named, unless the user lists them.
func TestUnread(t *testing.T) {
	const server = `{"mcpServers": {"s": {"command": "x"}}}`
	const earlier = "it is not read: the earlier mcp-bridge did, and no host does"
	mac := Env{Home: "/Users/u", Dir: "/w/p", GOOS: "darwin"}
	for _, tt := range []struct {
		file   string
		env    Env
		path   string // that is named
		reason string
	}{
		{"/home/u/MCPs/a.json", linux(), "/home/u/MCPs", earlier},
		{"/w/p/mcp-servers/a.json", linux(), "/w/p/mcp-servers", earlier},
		{"/home/u/.opencode.json", linux(), "", earlier},
		{"/w/p/claude_code_config.json", linux(), "", earlier},
		{"/w/p/claude_desktop_config.json", linux(), "", earlier},
		{"/home/u/.config/Claude Code/claude_code_config.json", linux(), "", earlier},
		{"/Users/u/Library/Application Support/Claude Code/claude_code_config.json", mac, "", earlier},
		{"/Users/u/Library/Application Support/Claude Code/mcp/servers/a.json", mac,
			"/Users/u/Library/Application Support/Claude Code/mcp/servers", earlier},
		{"/Users/u/Library/Application Support/Claude/claude_code_config.json", mac, "", earlier},
		{"/home/u/.config/mcphub/servers.json", linux(), "", "mcphub.nvim makes of its servers isn't known"},
		{"/home/u/.rovodev/mcp.json", linux(), "", "Rovo Dev makes of its servers"},
		{"/home/u/.config/github-copilot/intellij/mcp.json", linux(), "", "Copilot in JetBrains"},
		{"/home/u/.config/github-copilot/xcode/mcp.json", linux(), "", "Copilot in Xcode"},
	} {
		path := tt.path
		if path == "" {
			path = tt.file
		}
		c := Scan(tree{tt.file: server}.fs(), tt.env)
		if len(c.Servers) != 0 || len(c.Problems) != 1 || c.Problems[0].Source.Path != path ||
			!strings.Contains(c.Problems[0].Reason, tt.reason) ||
			!strings.Contains(c.Problems[0].Next, "MCP_BRIDGE_CONFIG") {
			t.Errorf("%s: %v", tt.file, c)
		}
		tt.env.ConfigPaths = []string{path}
		if c := Scan(tree{tt.file: server}.fs(), tt.env); len(c.Servers) != 1 || len(c.Problems) != 0 {
			t.Errorf("%s, listed: %v", tt.file, c)
		}
	}
	const settings = "/home/u/.config/Code/User/settings.json"
	for data, want := range map[string]int{`{"mcp": {"servers": {"s": {"command": "x"}}}}`: 1,
		`{"mcp.servers": {}}`: 1, `{"mcp": {"inputs": []}}`: 0} {
		if c := Scan(tree{settings: data}.fs(), linux()); len(c.Problems) != want {
			t.Errorf("%s: %v", data, c.Problems)
		}
	}
}
