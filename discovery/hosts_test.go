package discovery

import (
	"slices"
	"testing"
)

const one = `{"mcpServers": {"fs": {"command": "npx", "args": ["-y", ` +
	`"@modelcontextprotocol/server-filesystem", "/w"]}}}`

func TestHosts(t *testing.T) {
	const fsServer = "fs: npx -y @modelcontextprotocol/server-filesystem /w"
	windows := Env{Home: `C:\Users\u`, Dir: `C:\w\p`, AppData: `C:\Users\u\AppData\Roaming`, GOOS: "windows"}
	mac := Env{Home: "/Users/u", Dir: "/w/p", GOOS: "darwin"}
	xdg := linux()
	xdg.ConfigHome = "/cfg"
	code := `{
	// written by hand
	"inputs": [{"id": "key", "type": "promptString", "password": true}],
	"servers": {
		"fs": {"type": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/w"], "env": {"PORT": 8080, "GONE": null}, "cwd": "sub"},
		"gh": {"type": "http", "url": "https://api.githubcopilot.com/mcp/"},
		"key": {"command": "npx", "env": {"KEY": "${input:key}"}},
		"dir": {"command": "npx", "args": ["${workspaceFolder}"]},
		"file": {"command": "npx", "envFile": "${input:dir}/.env"},
		"box": {"command": "npx", "sandboxEnabled": true},
		"off": {"command": "npx", "disabled": true},
	},
}`
	const github = "gh: http https://api.githubcopilot.com/mcp/"
	codeProblems := []string{
		"box: VS Code runs it in a sandbox of its own, which the bridge can't do",
		"file: its envFile asks for an input of VS Code, which nothing else can read",
		"key: its env.KEY asks for an input of VS Code, which nothing else can read",
		"off: it is disabled there",
	}
	for _, tt := range []struct {
		name     string
		env      Env
		files    tree
		servers  []string
		problems []string
	}{
		{"Claude Code, user scope", linux(), tree{"/home/u/.claude.json": `{"numStartups": 3, "mcpServers": {
			"fs": {"type": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/w"], "env": {}},
			"linear": {"type": "sse", "url": "https://mcp.linear.app/sse"},
			"kept": {"command": "kept", "disabled": true, "cwd": "/ignored"}}}`},
			[]string{fsServer, "kept: kept", "linear: sse https://mcp.linear.app/sse"}, nil},
		{"Claude Code, local scope of the repository", linux(), tree{
			"/w/p/.git/HEAD": "",
			"/home/u/.claude.json": `{"projects": {"/w/p": ` + one +
				`, "/w/other": {"mcpServers": {"other": {"command": "x"}}}}}`},
			[]string{fsServer}, nil},
		{"Claude Code, local scope seen from below", Env{Home: "/home/u", Dir: "/w/p/deep/er"}, tree{
			"/w/p/.git": "gitdir: elsewhere", "/home/u/.claude.json": `{"projects": {"/w/p": ` + one + `}}`},
			[]string{fsServer}, nil},
		{"Claude Code, another directory for its files", linux("CLAUDE_CONFIG_DIR=/cc"), tree{
			"/cc/.claude.json": one, "/home/u/.claude.json": `{"mcpServers": {"unread": {"command": "x"}}}`},
			[]string{fsServer}, nil},
		{"Claude Code, files it doesn't read", linux(), tree{
			"/home/u/.claude/settings.json": one, "/home/u/.claude/mcp.json": one, "/home/u/.claude/.mcp.json": one},
			nil, nil},
		{"Claude Code on windows", windows, tree{`C:\Users\u\.claude.json`: `{"projects": {"c:/w/P": ` + one +
			`}}`}, []string{fsServer}, nil},
		{"Claude Desktop on Linux", linux(), tree{"/home/u/.config/Claude/claude_desktop_config.json": one},
			[]string{fsServer}, nil},
		{"Claude Desktop on Linux, elsewhere", xdg, tree{"/cfg/Claude/claude_desktop_config.json": one},
			[]string{fsServer}, nil},
		{"Claude Desktop on macOS", mac, tree{"/Users/u/Library/Application " +
			"Support/Claude/claude_desktop_config.json": one}, []string{fsServer}, nil},
		{"Claude Desktop on windows", windows,
			tree{`C:\Users\u\AppData\Roaming\Claude\claude_desktop_config.json`: one}, []string{fsServer}, nil},
		{"Cursor", linux(), tree{"/home/u/.cursor/mcp.json": `{"mcpServers": {
			"fs": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/w"]},
			"figma": {"url": "http://127.0.0.1:3845/sse"},
			"env": {"command": "npx", "env": {"K": "${env:K}"}},
			"old": {"command": "npx", "enabled": false}}}`},
			[]string{"figma: http http://127.0.0.1:3845/sse", fsServer}, []string{
				"env: its env.K needs the variable K, which is not set here",
				"old: it is disabled there"}},
		{"Cursor on windows", windows, tree{`C:\Users\u\.cursor\mcp.json`: one}, []string{fsServer}, nil},
		{"Cursor, project", linux(), tree{"/w/p/.cursor/mcp.json": one}, nil, []string{
			"fs: Cursor asks before it starts what a project brings along, and its answer can't be read " +
				"from outside"}},
		{"VS Code on Linux", linux(), tree{"/home/u/.config/Code/User/mcp.json": code},
			[]string{"dir: npx /w/p", fsServer + " PORT=8080 in /w/p/sub", github}, codeProblems},
		{"VS Code on macOS", mac, tree{"/Users/u/Library/Application Support/Code/User/mcp.json": code},
			[]string{"dir: npx /w/p", fsServer + " PORT=8080 in /w/p/sub", github}, codeProblems},
		{"VS Code on windows", windows, tree{`C:\Users\u\AppData\Roaming\Code\User\mcp.json`: code},
			[]string{`dir: npx C:\w\p`, fsServer + ` PORT=8080 in C:\w\p\sub`, github}, codeProblems},
		{"VS Code Insiders and a remote one", linux(), tree{
			"/home/u/.config/Code - Insiders/User/mcp.json": `{"servers": {"insider": {"command": "x"}}}`,
			"/home/u/.vscode-server/data/User/mcp.json":     `{"servers": {"far": {"command": "y"}}}`},
			[]string{"far: y", "insider: x"}, nil},
		{"VS Code, workspace", linux(),
			tree{"/w/p/.vscode/mcp.json": `{"servers": {"fs": {"command": "x"}}}`}, nil, []string{
				"fs: VS Code asks before it starts what a project brings along, and its answer can't be read " +
					"from outside"}},
		{"VS Code, the key of others", linux(), tree{"/home/u/.config/Code/User/mcp.json": one}, nil,
			[]string{
				`/home/u/.config/Code/User/mcp.json: it has "mcpServers" but no "servers", which is the only ` +
					`one that VS Code reads`}},
		{"our own directory", linux(), tree{
			"/home/u/.config/mcp/servers/many.json": `{"description": "of the team", "mcpServers": ` +
				`{"a": {"command": "a", "cwd": "x"}, "b": {"command": "b", "cwd": "/y"}}}`,
			"/home/u/.config/mcp/servers/single.json":  `{"command": "s", "args": ["1"]}`,
			"/home/u/.config/mcp/servers/none.json":    `{"$schema": "x"}`,
			"/home/u/.config/mcp/servers/note.txt":     `not read`,
			"/home/u/.config/mcp/servers/.hidden.json": `not read`},
			[]string{"a: a in /home/u/.config/mcp/servers/x", "b: b in /y", "single: s 1"},
			[]string{`/home/u/.config/mcp/servers/none.json: it holds no servers: there is neither an ` +
				`object "mcpServers" nor a "command"`}},
		{"working in the home directory", Env{Home: "/home/u", Dir: "/home/u", GOOS: "linux"}, tree{
			"/home/u/.cursor/mcp.json": one, "/home/u/.claude.json": `{"projects": {"/home/u": ` +
				`{"mcpServers": {"h": {"command": "h"}}}}}`},
			[]string{fsServer, "h: h"}, nil},
		{"no home", Env{Dir: "/w/p", GOOS: "linux"}, tree{}, nil,
			[]string{"~: the home directory is not known, so nothing below it was looked for"}},
		{"nothing at all", linux(), tree{}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, Scan(tt.files.fs(), tt.env), tt.servers, tt.problems)
		})
	}
}

func TestConfigPaths(t *testing.T) {
	files := tree{
		"/w/p/mine.json":           `{"mcpServers": {"fs": {"command": "mine"}}}`,
		"/home/u/more/a.json":      `{"servers": {"a": {"command": "a"}}}`,
		"/home/u/more/b.json":      `{"command": "b"}`,
		"/home/u/.cursor/mcp.json": one,
		"/w/p/.cursor/mcp.json":    `{"mcpServers": {"trusted": {"command": "t"}}}`,
		"/w/p/.mcp.json":           `{"mcpServers": {"asked": {"command": "x"}}}`,
	}
	env := linux()
	env.ConfigPaths = []string{"mine.json", "~/more", "/nowhere.json", "", "./.cursor/mcp.json", ".mcp.json"}
	check(t, Scan(files.fs(), env),
		[]string{"a: a", "asked: x", "b: b", "fs: mine", "trusted: t"},
		[]string{"/nowhere.json: it does not exist",
			"fs: shadowed by the server of the same name in /w/p/mine.json (mcp-bridge, MCP_BRIDGE_CONFIG)"})

	env.Dir = ""
	env.ConfigPaths = []string{"mine.json"}
	check(t, Scan(files.fs(), env), []string{"fs: npx -y @modelcontextprotocol/server-filesystem /w"},
		[]string{"mine.json: it is not an absolute path, and there is no working directory that it could " +
			"count from"})
}

func TestPrecedence(t *testing.T) {
	server := func(command string) string {
		return `{"mcpServers": {"s": {"command": "` + command + `", "args": [], "env": {}}}}`
	}
	const cursor, ours = "/home/u/.cursor/mcp.json", "/home/u/.config/mcp/servers/s.json"
	for _, tt := range []struct {
		name     string
		files    tree
		servers  []string
		problems []string
	}{
		{"local before user before project", tree{
			"/home/u/.claude.json": `{"projects": {"/w/p": {"enabledMcpjsonServers": ["s"], "mcpServers": ` +
				`{"s": {"command": "local"}}}}, "mcpServers": {"s": {"command": "user"}}}`,
			"/w/p/.mcp.json": server("project")},
			[]string{"s: local"}, []string{
				"s: a project's server doesn't take the place of the user's own of that name, in " +
					"/home/u/.claude.json (Claude Code, local)",
				"s: shadowed by the server of the same name in /home/u/.claude.json (Claude Code, local)"}},
		{"the user's own in any host before a project's", tree{
			"/home/u/.claude.json": `{"projects": {"/w/p": {"enabledMcpjsonServers": ["s"]}}}`, "/w/p/.mcp.json": server("project"), ours: server("mine")},
			[]string{"s: mine"}, []string{"s: a project's server doesn't take the place of the user's own " +
				"of that name, in " + ours + " (mcp-bridge, user)"}},
		{"also where Copilot CLI trusts the project", tree{
			"/home/u/.copilot/config.json": `{"trusted_folders": ["/w/p"]}`, "/w/p/.mcp.json": server("project"),
			ours: server("mine")}, []string{"s: mine"}, []string{"s: it is not yet approved in Claude Code",
			"s: a project's server doesn't take the place of the user's own of that name, in " + ours +
				" (mcp-bridge, user)"}},
		{"the nearest .mcp.json", tree{
			"/home/u/.claude.json": `{"projects": {"/w/p": {"enabledMcpjsonServers": ["s"]}}}`,
			"/w/p/.mcp.json":       server("near"), "/w/.mcp.json": server("far"), "/.mcp.json": server("root")},
			[]string{"s: near"}, []string{"s: it is approved in Claude Code, but /w is not yet trusted there"}},
		{"identical ones are folded", tree{cursor: server("x"), ours: `{"command": "x"}`}, []string{"s: x"},
			nil},
		{"whatever another host calls them", tree{cursor: server("x"),
			"/home/u/.config/mcp/servers/t.json": `{"command": "x"}`}, []string{"s: x"}, []string{
			"t: it is the same server as s of " + cursor + " (Cursor, user), and is used under that name"}},
		{"two names in one host are two", tree{cursor: `{"mcpServers": {"s": {"command": "x"}, "t": ` +
			`{"command": "x"}}}`}, []string{"s: x", "t: x"}, nil},
		{"one that the bridge can't use keeps its name in its host", tree{
			"/home/u/.claude.json": `{"projects": {"/w/p": {"mcpServers": {"s": {"type": "http", "url": ` +
				`"https://${X}"}}}}, "mcpServers": {"s": {"command": "user"}}}`},
			nil, []string{
				"s: its url needs the variable X, which is not set here",
				"s: shadowed by the server of the same name in /home/u/.claude.json (Claude Code, local), " +
					"which Claude Code uses and the bridge can't"}},
		{"but not in others", tree{
			"/home/u/.claude.json": `{"mcpServers": {"s": {"type": "http", "url": "https://${X}"}}}`, cursor: server("c")},
			[]string{"s: c"}, []string{"s: its url needs the variable X, which is not set here"}},
		{"one that its host doesn't use keeps nothing", tree{
			"/home/u/.claude.json": `{"mcpServers": {"s": {"command": "user"}}}`, "/w/p/.mcp.json": server("project")},
			[]string{"s: user"}, []string{"s: it is not yet approved in Claude Code"}},
		{"twice in a file", tree{cursor: `{"mcpServers": {"s": {"command": "first"}, "s": {"command": ` +
			`"last"}}}`},
			[]string{"s: last"}, []string{"s: the file has this name more than once; only the last one counts"}},
		{"the object twice in a file", tree{cursor: `{"mcpServers": {"a": {"command": "first"}}, ` +
			`"mcpServers": {"b": {"command": "last"}}}`},
			[]string{"b: last"}, []string{cursor +
				`: it has "mcpServers" more than once; only the last one counts`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, Scan(tt.files.fs(), linux()), tt.servers, tt.problems)
		})
	}
	c := Scan(tree{cursor: server("x"), ours: `{"command": "x"}`}.fs(), linux())
	if got := c.Servers[0].Also; len(got) != 1 || got[0].Path != ours {
		t.Errorf("Also = %v, want %s", got, ours)
	}
}

// TestTwins: a server that several files have is one, by whatever name, and what any of them hides
// is hidden.
func TestTwins(t *testing.T) {
	files := tree{
		"/home/u/.codex/config.toml": "[mcp_servers.cx]\ncommand = \"x\"\ndisabled_tools = [\"echo\"]\n",
		"/home/u/.cursor/mcp.json":   `{"mcpServers": {"s": {"command": "x"}}}`,
	}
	c := Scan(files.fs(), linux())
	if len(c.Servers) != 1 {
		t.Fatalf("got %v", c.Servers)
	}
	for _, s := range c.Servers {
		names := s.Names()
		if slices.Sort(names); !slices.Equal(names, []string{"cx", "s"}) {
			t.Errorf("%v has the names %q", s, names)
		}
		if by, hidden := s.HiddenBy("echo"); !hidden || by.Host != "Codex" {
			t.Errorf("%v: echo is hidden by %v, %v", s, by, hidden)
		}
		if by, hidden := s.HiddenBy("read"); hidden {
			t.Errorf("%v: read is hidden by %v", s, by)
		}
	}
}
