package discovery

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const one = `{"mcpServers": {"fs": {"command": "npx", "args": ["-y", ` +
	`"@modelcontextprotocol/server-filesystem", "/w"]}}}`

// TestHosts: each host in its own dialect, from files as it, or its documentation, has them. A file
// of testdata/hosts has a line on what it shows, lines on what differs from the user of linux, the
// files, and what is found in them, which -update rewrites.
func TestHosts(t *testing.T) {
	names, err := filepath.Glob("testdata/hosts/*.txt")
	if err != nil || len(names) < 40 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			about, files := archive(t, name)
			env := envOf(t, about)
			lines := func(section string) []string {
				text := strings.TrimSpace(files[section])
				delete(files, section)
				return slices.DeleteFunc(strings.Split(text, "\n"), func(s string) bool { return s == "" })
			}
			servers, problems := lines("servers"), lines("problems")
			if *update {
				rewrite(t, name, Scan(files.fs(), env))
				return
			}
			check(t, Scan(files.fs(), env), servers, problems)
		})
	}
}

// envOf returns the user of an archive, which has lines on what differs from the user of linux.
func envOf(t *testing.T, about []string) Env {
	t.Helper()
	env := linux("KEY=k", "TOKEN=t")
	for _, line := range about[1:] {
		switch key, value, _ := strings.Cut(line, ": "); key {
		case "system":
			env.Home, env.Dir, env.GOOS = `C:\Users\u`, `C:\w\p`, value
		case "dir":
			env.Dir = value
		case "vars":
			env.Getenv = getenv(strings.Fields(value)...)
		default:
			t.Errorf("line %q", line)
		}
	}
	return env
}

// rewrite replaces what is found in the files of an archive.
func rewrite(t *testing.T, name string, c Catalog) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files, _, _ := strings.Cut(string(data), "-- servers --\n")
	servers, problems := brief(c)
	slices.Sort(problems)
	for _, line := range slices.Concat([]string{"-- servers --"}, servers, []string{"-- problems --"},
		problems) {
		files += line + "\n"
	}
	if err := os.WriteFile(name, []byte(files), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestNoFiles: where there are none, none are missed.
func TestNoFiles(t *testing.T) {
	check(t, Scan(tree{}.fs(), linux()), nil, nil)
	check(t, Scan(tree{}.fs(), Env{Dir: "/w/p", GOOS: "linux"}), nil,
		[]string{"~: the home directory is not known, so nothing below it was looked for"})
	env := linux()
	env.ConfigHome = "/cfg"
	check(t, Scan(tree{"/cfg/Claude/claude_desktop_config.json": `{"mcpServers": {"s": {"command": ` +
		`"x"}}}`}.fs(),
		env), []string{"s: x"}, nil)
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
	env.ConfigPaths = []string{"/w/p/mine.json", "~/more", "/nowhere.json", "", "/w/p/./.cursor/mcp.json",
		"/w/p/.mcp.json"}
	check(t, Scan(files.fs(), env),
		[]string{"a: a", "asked: x", "b: b", "fs: mine", "trusted: t"},
		[]string{"/nowhere.json: it does not exist",
			"fs: shadowed by the server of the same name in /w/p/mine.json (mcp-bridge, MCP_BRIDGE_CONFIG)"})

	env.ConfigPaths = []string{"mine.json"}
	check(t, Scan(files.fs(), env), []string{"fs: npx -y @modelcontextprotocol/server-filesystem /w"},
		[]string{"asked: it is not yet approved in Claude Code", "mine.json: it is not an absolute path",
			"trusted: Cursor asks before it starts what a project brings along, and its answer can't be read " +
				"from outside"})
}

func TestPrecedence(t *testing.T) {
	server := func(command string) string {
		return `{"mcpServers": {"s": {"command": "` + command + `", "args": [], "env": {}}}}`
	}
	const cursor, ours = "/home/u/.cursor/mcp.json", "/home/u/.config/mcp/servers/s.json"
	for _, tt := range []scanCase{
		{"local before user before project", tree{
			"/home/u/.claude.json": `{"projects": {"/w/p": {"enabledMcpjsonServers": ["s"], "mcpServers": ` +
				`{"s": {"command": "local"}}}}, "mcpServers": {"s": {"command": "user"}}}`,
			"/w/p/.mcp.json": server("project")},
			[]string{"s: local"}, []string{
				"s: a project's server doesn't take the place of the user's own of that name, in " +
					"/home/u/.claude.json (Claude Code, local)",
				"s: shadowed by the server of the same name in /home/u/.claude.json (Claude Code, local)"}},
		{"the user's own in any host before a project's", tree{
			"/home/u/.claude.json": `{"projects": {"/w/p": {"enabledMcpjsonServers": ["s"]}}}`,
			"/w/p/.mcp.json":       server("project"), ours: server("mine")},
			[]string{"s: mine"}, []string{"s: a project's server doesn't take the place of the user's own " +
				"of that name, in " + ours + " (mcp-bridge, user)"}},
		{"also where Copilot CLI trusts the project", tree{
			"/home/u/.copilot/config.json": `{"trusted_folders": ["/w/p"]}`,
			"/w/p/.mcp.json":               server("project"),
			ours:                           server("mine")},
			[]string{"s: mine"}, []string{"s: it is not yet approved in Claude Code",
				"s: a project's server doesn't take the place of the user's own of that name, in " + ours +
					" (mcp-bridge, user)"}},
		{"the nearest .mcp.json", tree{
			"/home/u/.claude.json": `{"projects": {"/w/p": {"enabledMcpjsonServers": ["s"]}}}`,
			"/w/p/.mcp.json":       server("near"), "/w/.mcp.json": server("far"),
			"/.mcp.json": server("root")},
			[]string{"s: near"}, []string{"s: it is approved in Claude Code, but /w is not yet trusted " +
				"there"}},
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
			"/home/u/.claude.json": `{"mcpServers": {"s": {"type": "http", "url": "https://${X}"}}}`,
			cursor:                 server("c")},
			[]string{"s: c"}, []string{"s: its url needs the variable X, which is not set here"}},
		{"one that its host doesn't use keeps nothing", tree{
			"/home/u/.claude.json": `{"mcpServers": {"s": {"command": "user"}}}`,
			"/w/p/.mcp.json":       server("project")},
			[]string{"s: user"}, []string{"s: it is not yet approved in Claude Code"}},
		{"twice in a file", tree{cursor: `{"mcpServers": {"s": {"command": "first"}, "s": {"command": ` +
			`"last"}}}`},
			[]string{"s: last"}, []string{"s: the file has this name more than once; only the last one " +
				"counts"}},
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
