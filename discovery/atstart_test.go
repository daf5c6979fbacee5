package discovery

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// trusting is a home whose hosts trust the project /w/p, as far as they have a file for that.
var trusting = tree{
	"/home/u/.claude.json": `{"projects": {"/w/p": {"hasTrustDialogAccepted": true, ` +
		`"enabledMcpjsonServers": ["kept", "new"]}}}`,
	"/home/u/.codex/config.toml":          "[projects.\"/w/p\"]\ntrust_level = \"trusted\"\n",
	"/home/u/.gemini/trustedFolders.json": `{"/w/p": "TRUST_FOLDER"}`,
	"/w/p/.git/HEAD":                      "",
}

// TestProjectFilesAreReadAtTheStart: whatever comes into the project later, in a file of any host,
// is not there for the bridge: no server, and no word on one. Files of the user's own are read
// again.
func TestProjectFilesAreReadAtTheStart(t *testing.T) {
	_, paths := opened(tree{}.fs(), linux())
	files := map[string]row{}
	for _, r := range rows() {
		for _, file := range paths(r) {
			if r.InProject() {
				files[strings.Replace(file, "*", "x", 1)] = r
			}
		}
	}
	if len(files) < 15 {
		t.Fatalf("only %v are a project's", files)
	}
	for file, r := range files {
		t.Run(file, func(t *testing.T) {
			for _, before := range []string{"", r.example(file, "kept", "kept", "")} {
				fsys := trusting.fs()
				set := func(p, data string) {
					fsys[strings.TrimPrefix(p, "/")] = &fstest.MapFile{Data: []byte(data), Mode: 0o600}
				}
				if before != "" {
					set(file, before)
				}
				s := NewScanner(fsys, linux())
				first := full(s.Scan())
				if before != "" && !strings.Contains(first, "kept") {
					t.Errorf("of %q nothing is read:\n%s", before, first)
				}
				set(file, r.example(file, "new", "new", ""))
				if again := full(s.Scan()); again != first {
					t.Errorf("with %q at the start, a later file is read:\n%s", before, again)
				}
				delete(fsys, strings.TrimPrefix(file, "/"))
				if again := full(s.Scan()); again != first {
					t.Errorf("with %q at the start, its end is noticed:\n%s", before, again)
				}
				set("/home/u/.cursor/mcp.json", `{"mcpServers": {"mine": {"command": "x"}}}`)
				if c := s.Scan(); !slices.ContainsFunc(c.Servers,
					func(s Server) bool { return s.Name == "mine" }) {
					t.Error("the user's own file isn't read again")
				}
			}
		})
	}
}

// TestProjectDoesNotApproveItself: approvals that come into the project later don't count, nor does
// a repository.
func TestProjectDoesNotApproveItself(t *testing.T) {
	start := maps.Clone(trusting)
	start["/home/u/.claude.json"] = `{"projects": {"/w/p": {"hasTrustDialogAccepted": true}}}`
	start["/w/p/.mcp.json"] = `{"mcpServers": {"new": {"command": "new"}}}`
	delete(start, "/w/p/.git/HEAD")
	fsys := start.fs()
	s := NewScanner(fsys, linux())
	before := full(s.Scan())
	for _, p := range []string{"w/p/.claude/settings.json", "w/p/.claude/settings.local.json"} {
		fsys[p] = &fstest.MapFile{Data: []byte(`{"enableAllProjectMcpServers": true}`), Mode: 0o600}
	}
	fsys["w/.git/HEAD"] = &fstest.MapFile{Mode: 0o600}
	if again := full(s.Scan()); again != before {
		t.Errorf("it is\n%s\nand was\n%s", again, before)
	}
	if c := Scan(fsys, linux()); len(c.Servers) != 1 {
		t.Errorf("these settings approve nothing at a start either: the test shows nothing: %v", c.Problems)
	}
}

// TestHomeAsProject: in the home directory a host's own file stays the user's, and is read again.
func TestHomeAsProject(t *testing.T) {
	env := linux()
	env.Dir = "/home/u"
	fsys := tree{"/home/u/.cursor/mcp.json": `{"mcpServers": {}}`, "/home/u/.claude/settings.json": `{}`}.fs()
	s := NewScanner(fsys, env)
	s.Scan()
	fsys["home/u/.cursor/mcp.json"] = &fstest.MapFile{Data: []byte(`{"mcpServers": {"mine": {"command": ` +
		`"x"}}}`), Mode: 0o600}
	if c := s.Scan(); len(c.Servers) != 1 || c.Servers[0].OfProject {
		t.Errorf("servers are %v", c.Servers)
	}
}

// TestID: a definition's ID is the same as long as its files say the same, and another one when any
// part of it that counts differs, wherever it is written.
func TestID(t *testing.T) {
	const mine, cursor, envFile = "/home/u/.config/mcp/servers/s.json", "/home/u/.cursor/mcp.json",
		"/home/u/s.env"
	id := func(env Env, files tree) string {
		t.Helper()
		for _, s := range Scan(files.fs(), env).Servers {
			if s.Name == "s" {
				return s.ID()
			}
		}
		t.Fatalf("there is no s in %v", files)
		return ""
	}
	entry := func(text string) tree {
		return tree{mine: `{"mcpServers": {"s": ` + text + `}}`,
			envFile: "A=1\n"}
	}
	elsewhere := linux("TOKEN=other")
	elsewhere.Dir = "/w/q"
	for _, tt := range []struct {
		name   string
		a, b   tree
		env    Env
		differ bool
	}{
		{"another value of a variable of ours, in another project",
			entry(`{"command": "x", "args": ["${TOKEN}"]}`),
			entry(`{"command": "x", "args": ["${TOKEN}"]}`), elsewhere, false},
		{"another variable", entry(`{"command": "x", "args": ["${TOKEN}"]}`),
			entry(`{"command": "x", "args": ["${TOKEN2}"]}`), linux("TOKEN2=one"), true},
		{"another file of the user's", entry(`{"command": "x"}`),
			tree{cursor: `{"mcpServers": {"s": {"command": "x"}}}`}, linux(), false},
		{"the same text where it is no reference", entry(`{"command": "x", "args": ["${TOKEN}"]}`),
			tree{"/home/u/.codeium/windsurf/mcp_config.json": `{"mcpServers": {"s": {"command": "x", ` +
				`"args": ["${TOKEN}"]}}}`}, linux("TOKEN=one"), true},
		{"a command", entry(`{"command": "x"}`), entry(`{"command": "y"}`), linux(), true},
		{"an argument", entry(`{"command": "x"}`), entry(`{"command": "x", "args": ["y"]}`), linux(), true},
		{"a variable", entry(`{"command": "x"}`),
			entry(`{"command": "x", "env": {"NODE_OPTIONS": "--require /tmp/x"}}`), linux(), true},
		{"a directory", entry(`{"command": "x"}`), entry(`{"command": "x", "cwd": "/tmp"}`), linux(), true},
		{"a directory beside another file", tree{mine: `{"mcpServers": {"s": {"command": "x", "cwd": "y"}}}`},
			tree{"/home/u/.config/mcp/mcp.json": `{"mcpServers": {"s": {"command": "x", "cwd": "y"}}}`},
			linux(), true},
		{"a URL", entry(`{"url": "https://a/"}`), entry(`{"url": "https://b/"}`), linux(), true},
		{"a header", entry(`{"url": "https://a/"}`), entry(`{"url": "https://a/", "headers": {"X": "y"}}`),
			linux(), true},
		{"a program for headers", entry(`{"url": "https://a/"}`),
			entry(`{"url": "https://a/", "headersHelper": "y"}`), linux(), true},
		{"what the envFile holds", entry(`{"command": "x", "envFile": "/home/u/s.env"}`),
			entry(`{"command": "x", "envFile": "/home/u/s.env"}`).with(envFile, "A=2\n"), linux(), true},
		{"what a named file holds", tree{"/home/u/.config/opencode/opencode.json": `{"mcp": {"s": ` +
			`{"type": "local", "command": ["x", "{file:/home/u/s.env}"]}}}`, envFile: "1"},
			tree{"/home/u/.config/opencode/opencode.json": `{"mcp": {"s": {"type": "local", "command": ` +
				`["x", "{file:/home/u/s.env}"]}}}`, envFile: "2"}, linux(), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := id(linux("TOKEN=one"), tt.a) != id(tt.env, tt.b); got != tt.differ {
				t.Errorf("another one: %v, want %v", got, tt.differ)
			}
		})
	}
	option := func(value string) string {
		settings := `{"enabledPlugins": {"p@m": true}, "pluginConfigs": {"p@m": {"options": {"key": "` +
			value + `"}}}}`
		files := installed(settings, tree{".mcp.json": `{"s": {"command": "x", "args": ` +
			`["${user_config.key}"]}}`})
		return Scan(files.fs(), linux()).Servers[0].ID()
	}
	if option("a") == option("b") {
		t.Error("an option of a plugin's is no part of the definition")
	}
	local := func(dir string) Env { e := linux(); e.Dir = dir; return e }
	files := tree{"/home/u/.claude.json": `{"projects": {"/w/p": {"mcpServers": {"s": {"command": ` +
		`"./x"}}}, "/w/q": {"mcpServers": {"s": {"command": "./x"}}}}}`}
	if id(local("/w/p"), files) == id(local("/w/q"), files) {
		t.Error("what is written for one project is the same in another one")
	}
}

// TestFilesOfAServer: beside the file that defines a server these are the ones that fill it in and
// that say whether it is used.
func TestFilesOfAServer(t *testing.T) {
	files := maps.Clone(trusting)
	files["/w/p/.codex/config.toml"] = "[mcp_servers.codex]\ncommand = \"x\"\n"
	files["/w/p/.gemini/settings.json"] = `{"mcpServers": {"gemini": {"command": "y"}}}`
	files["/w/p/.mcp.json"] = `{"mcpServers": {"new": {"command": "z"}}}`
	files["/home/u/.cursor/mcp.json"] = `{"mcpServers": {"cursor": {"command": "a", "envFile": ` +
		`"/home/u/x.env"}}}`
	files["/home/u/x.env"] = "A=b\n"
	want := map[string][]string{
		"codex": {"/w/p/.codex/config.toml", "/home/u/.codex/config.toml"},
		"gemini": {"/w/p/.gemini/settings.json", "/home/u/.gemini/trustedFolders.json",
			"/home/u/.gemini/mcp-server-enablement.json", "/home/u/.gemini/settings.json"},
		"new": {"/w/p/.mcp.json", "/home/u/.claude.json", "/w/p/.claude/settings.local.json",
			"/home/u/.claude/settings.json"},
		"cursor": {"/home/u/.cursor/mcp.json", "/home/u/x.env"},
	}
	for _, s := range Scan(files.fs(), linux()).Servers {
		for _, f := range want[s.Name] {
			if !slices.Contains(s.Files, f) {
				t.Errorf("of %s, %s is not among %q", s.Name, f, s.Files)
			}
		}
		if s.Name == "cursor" && len(s.Files) != 2 {
			t.Errorf("of cursor there are %q", s.Files)
		}
		delete(want, s.Name)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}
