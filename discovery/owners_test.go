package discovery

import (
	"io/fs"
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// owned is the user u of linux, 1000, whose are all files and directories but those that others
// has.
func owned(files tree, others map[string]trust.Entry) Env {
	entries := map[string]trust.Entry{}
	for p := range files {
		entries[p] = trust.Entry{Mode: 0o644, UID: 1000, GID: 1000}
		for d := path.Dir(p); ; d = path.Dir(d) {
			entries[d] = trust.Entry{Mode: fs.ModeDir | 0o755, UID: 1000, GID: 1000}
			if d == "/" {
				break
			}
		}
	}
	maps.Copy(entries, others)
	env := linux()
	env.Owners = trust.Owners{Self: 1000, Private: func(gid int) bool { return gid == 1000 },
		Look: func(p string) (trust.Entry, error) {
			e, ok := entries[p]
			if !ok {
				return e, fs.ErrNotExist
			}
			return e, nil
		}}
	return env
}

// TestExposedFiles: what other users could have written starts nothing, shows
// nothing and approves of nothing; what it takes away counts all the same.
func TestExposedFiles(t *testing.T) {
	const (
		claude, settings, plugins = "/home/u/.claude.json", "/home/u/.claude/settings.json",
			"/home/u/.claude/plugins/installed_plugins.json"
		cursor, openCode         = "/home/u/.cursor/mcp.json", "/home/u/.config/opencode/opencode.json"
		gemini, trusts, switches = "/home/u/.gemini/settings.json",
			"/home/u/.gemini/trustedFolders.json", "/home/u/.gemini/mcp-server-enablement.json"
		code, codeSettings = "/home/u/.config/Code/User/mcp.json",
			"/home/u/.config/Code/User/settings.json"
		project      = "/w/p/.mcp.json"
		server       = `{"mcpServers": {"s": {"command": "x"}}}`
		geminiServer = `{"mcpServers": {"s": {"command": "x"}}}`
		approved     = `{"projects": {"/w/p": {"hasTrustDialogAccepted": true, ` +
			`"enabledMcpjsonServers": ["s"]}}}`
	)
	written := trust.Entry{Mode: 0o666, UID: 1000, GID: 1000}
	open := trust.Entry{Mode: fs.ModeDir | 0o777, UID: 1000, GID: 1000}
	theirs := trust.Entry{Mode: 0o644, UID: 1001, GID: 1001}
	const everybody, owner = " can be written to by everybody", " belongs to user 1001, who is neither you " +
		"nor root"
	for _, tt := range []struct {
		name   string
		files  tree
		others map[string]trust.Entry
		used   bool
		reason string // of the file that is exposed
		next   string
	}{
		{"the user's own", tree{cursor: server}, nil, true, "", ""},
		{"root's", tree{cursor: server}, map[string]trust.Entry{cursor: {Mode: 0o644}}, true, "", ""},
		{"umask 002", tree{cursor: server}, map[string]trust.Entry{cursor: {Mode: 0o664, UID: 1000,
			GID: 1000}, "/home/u/.cursor": {Mode: fs.ModeDir | 0o775, UID: 1000, GID: 1000}}, true, "", ""},
		{"everybody writes", tree{cursor: server}, map[string]trust.Entry{cursor: written}, false, cursor +
			everybody, "chmod o-w " + cursor},
		{"a group writes", tree{cursor: server}, map[string]trust.Entry{cursor: {Mode: 0o664, UID: 1000,
			GID: 50}}, false, cursor + " can be written to by its group 50", "chmod g-w " + cursor},
		{"another's", tree{cursor: server}, map[string]trust.Entry{cursor: theirs}, false, cursor + owner,
			"if you trust what it says, copy it"},
		{"everybody replaces it", tree{cursor: server}, map[string]trust.Entry{"/home/u/.cursor": open},
			false, "/home/u/.cursor" + everybody, "chmod o-w /home/u/.cursor"},
		{"the home directory is everybody's", tree{cursor: server}, map[string]trust.Entry{"/home/u": open},
			false, "/home/u" + everybody, "chmod o-w /home/u"},
		{"a link into a repository of dotfiles", tree{cursor: server}, map[string]trust.Entry{
			cursor: {Mode: fs.ModeSymlink | 0o777, UID: 1000,
				Target: "/home/u/dots/mcp.json"}, "/home/u/dots": {Mode: fs.ModeDir | 0o755, UID: 1000},
			"/home/u/dots/mcp.json": {Mode: 0o644, UID: 1000}}, true, "", ""},
		{"a link to another's", tree{cursor: server}, map[string]trust.Entry{
			cursor: {Mode: fs.ModeSymlink | 0o777, UID: 1000,
				Target: "/srv/mcp.json"}, "/srv": {Mode: fs.ModeDir | 0o755}, "/srv/mcp.json": theirs},
			false, "/srv/mcp.json" + owner, "copy it"},
		{"variables of a file that everybody writes",
			tree{cursor: `{"mcpServers": {"s": {"command": "x", "envFile": "/home/u/x.env"}}}`,
				"/home/u/x.env": "PATH=/evil"},
			map[string]trust.Entry{"/home/u/x.env": written}, false, "/home/u/x.env" +
				everybody, "chmod o-w /home/u/x.env"},
		{"a value of a file that everybody writes",
			tree{openCode: `{"mcp": {"s": {"type": "local", "command": ["{file:/home/u/x}"]}}}`,
				"/home/u/x": "/evil"},
			map[string]trust.Entry{"/home/u/x": written}, false, "/home/u/x" +
				everybody, "chmod o-w /home/u/x"},
		{"a project's that everybody writes", tree{claude: approved, project: server},
			map[string]trust.Entry{project: written}, false, project + everybody, "chmod o-w " + project},
		{"approval that everybody writes", tree{claude: approved, project: server},
			map[string]trust.Entry{claude: written}, false, claude + everybody, "chmod o-w " + claude},
		{"settings that everybody writes approve nothing",
			tree{claude: `{"projects": {"/w/p": {"hasTrustDialogAccepted": true}}}`,
				settings: `{"enableAllProjectMcpServers": true}`, project: server},
			map[string]trust.Entry{settings: written}, false, settings + everybody, "chmod o-w " + settings},
		{"they still deny", tree{claude: server, settings: `{"deniedMcpServers": [{"serverName": "s"}]}`},
			map[string]trust.Entry{settings: written}, false, settings + everybody, "chmod"},
		{"an administrator's that another could write", tree{claude: server,
			"/etc/claude-code/managed-settings.json": `{}`},
			map[string]trust.Entry{"/etc/claude-code/managed-settings.json": theirs},
			false, "/etc/claude-code/managed-settings.json" + owner, "copy it"},
		{"the user's trust in folders", tree{gemini: geminiServer, trusts: `{"/w": "TRUST_FOLDER"}`}, nil,
			true, "", ""},
		{"trust that everybody writes", tree{gemini: geminiServer, trusts: `{"/w": "TRUST_FOLDER"}`},
			map[string]trust.Entry{trusts: written}, false, trusts + everybody, "chmod o-w " + trusts},
		{"switches that everybody writes still switch off", tree{gemini: geminiServer,
			trusts: `{"/w": "TRUST_FOLDER"}`, switches: `{"s": {"enabled": false}}`},
			map[string]trust.Entry{switches: written}, false, switches + everybody, "chmod"},
		{"settings of VS Code that everybody writes still switch off",
			tree{code: `{"servers": {"s": {"command": "x"}}}`,
				codeSettings: `{"chat.mcp.access": "none"}`},
			map[string]trust.Entry{codeSettings: written}, false, codeSettings + everybody, "chmod"},
		{"a socket of the user's", tree{code: `{"servers": {"s": {"type": "http", "url": ` +
			`"unix:///run/x.sock"}}}`}, map[string]trust.Entry{
			"/run": {Mode: fs.ModeDir | 0o755}, "/run/x.sock": {Mode: fs.ModeSocket | 0o666,
				UID: 1000}}, true, "", ""},
		{"a socket of another's", tree{code: `{"servers": {"s": {"type": "http", "url": ` +
			`"unix:///run/x.sock"}}}`}, map[string]trust.Entry{
			"/run": {Mode: fs.ModeDir | 0o755}, "/run/x.sock": {Mode: fs.ModeSocket | 0o666,
				UID: 1001}}, false, "/run/x.sock" + owner, "copy it"},
		{"plugins that everybody lists", installed(on, tree{".mcp.json": `{"s": {"command": "x"}}`}),
			map[string]trust.Entry{plugins: written}, false, plugins + everybody, "chmod o-w " + plugins},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := owned(tt.files, tt.others)
			c := Scan(tt.files.fs(), env)
			if (len(c.Servers) == 1) != tt.used {
				t.Errorf("servers %v, want one: %v; problems %v", c.Servers, tt.used, c.Problems)
			}
			told := tt.reason == ""
			for _, p := range c.Problems {
				told = told || strings.Contains(p.Reason, "others could have written it: "+tt.reason) &&
					strings.Contains(p.Next, tt.next)
			}
			if !told {
				t.Errorf("problems %v, want %q and %q", c.Problems, tt.reason, tt.next)
			}
		})
	}
}

// TestExposedAndRemembered: while a bridge serves, what a file held before it was exposed doesn't
// count either.
func TestExposedAndRemembered(t *testing.T) {
	const cursor = "/home/u/.cursor/mcp.json"
	files := tree{cursor: `{"mcpServers": {"s": {"command": "x"}}}`}
	others := map[string]trust.Entry{}
	env := owned(files, nil)
	safe := env.Owners.Look
	env.Owners.Look = func(p string) (trust.Entry, error) {
		if e, ok := others[p]; ok {
			return e, nil
		}
		return safe(p)
	}
	scanner := NewScanner(files.fs(), env)
	for i, want := range []int{1, 0, 1} {
		delete(others, cursor)
		if want == 0 {
			others[cursor] = trust.Entry{Mode: 0o666, UID: 1000}
		}
		if c := scanner.Scan(); len(c.Servers) != want {
			t.Errorf("scan %d: %v, %v", i, c.Servers, c.Problems)
		}
	}
}

// TestTrustIsOfTheFolder: the user's word about a folder says nothing about what is above it,
// and that about a repository of another user's says nothing.
func TestTrustIsOfTheFolder(t *testing.T) {
	const (
		claude, settings = "/home/u/.claude.json", "/home/u/.claude/settings.json"
		codex            = "/home/u/.codex/config.toml"
		gemini           = "/home/u/.gemini/trustedFolders.json"
		toml             = "[mcp_servers.s]\ncommand = \"x\"\n"
		server           = `{"mcpServers": {"s": {"command": "x"}}}`
		above            = "it is approved in Claude Code, but /w is not yet trusted there"
		root             = "/w/.git/HEAD"
	)
	trusts := func(dir string, more string) string {
		return `{"projects": {"` + dir + `": {"hasTrustDialogAccepted": true` + more + `}}}`
	}
	foreign := map[string]trust.Entry{"/w/.git": {Mode: fs.ModeDir | 0o755, UID: 1001}}
	for _, tt := range []struct {
		name   string
		files  tree
		others map[string]trust.Entry
		reason string // why s isn't used; "-": it is used; empty: nothing is said of it
	}{
		{"Codex, the folder", tree{codex: "[projects.\"/w/p\"]\ntrust_level = \"trusted\"\n", root: "",
			"/w/p/.codex/config.toml": toml}, nil, "-"},
		{"Codex, the repository", tree{codex: "[projects.\"/w\"]\ntrust_level = \"trusted\"\n", root: "",
			"/w/p/.codex/config.toml": toml}, nil, "-"},
		{"Codex, above", tree{codex: "[projects.\"/w/p\"]\ntrust_level = \"trusted\"\n", root: "",
			"/w/.codex/config.toml": toml}, nil, "Codex isn't told to trust /w"},
		{"Codex, both", tree{codex: "[projects.\"/w/p\"]\ntrust_level = " +
			"\"trusted\"\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n", root: "",
			"/w/.codex/config.toml": toml}, nil, "-"},
		{"Codex, above and not", tree{codex: "[projects.\"/w/p\"]\ntrust_level = " +
			"\"trusted\"\n[projects.\"/w\"]\ntrust_level = \"untrusted\"\n", root: "",
			"/w/.codex/config.toml": toml}, nil, "Codex isn't told to trust /w"},
		{"Codex, another's repository", tree{codex: "[projects.\"/w\"]\ntrust_level = \"trusted\"\n",
			root: "", "/w/.codex/config.toml": toml}, foreign, ""},
		{"Codex, root's repository", tree{codex: "[projects.\"/w\"]\ntrust_level = \"trusted\"\n", root: "",
			"/w/.codex/config.toml": toml},
			map[string]trust.Entry{"/w/.git": {Mode: fs.ModeDir | 0o755}}, "-"},
		{"Gemini CLI, the folder", tree{gemini: `{"/w/p": "TRUST_FOLDER"}`, root: "",
			"/w/p/.gemini/settings.json": server}, nil, "-"},
		{"Gemini CLI, above", tree{gemini: `{"/w/p": "TRUST_FOLDER"}`, root: "",
			"/w/.gemini/settings.json": server}, nil, "Gemini CLI isn't told to trust /w"},
		{"Gemini CLI, both", tree{gemini: `{"/w": "TRUST_FOLDER"}`, root: "",
			"/w/.gemini/settings.json": server}, nil, "-"},
		{"Gemini CLI, above and not", tree{gemini: `{"/w/p": "TRUST_FOLDER", "/w": "DO_NOT_TRUST"}`, root: "",
			"/w/.gemini/settings.json": server}, nil, "Gemini CLI isn't told to trust /w"},
		{"Gemini CLI, another's repository", tree{gemini: `{"/w": "TRUST_FOLDER"}`, root: "",
			"/w/.gemini/settings.json": server}, foreign, ""},
		{"Claude Code, all approved", tree{claude: trusts("/w/p", ""),
			settings: `{"enableAllProjectMcpServers": true}`, "/w/p/.mcp.json": server}, nil, "-"},
		{"Claude Code, all approved, above", tree{claude: trusts("/w/p", ""),
			settings: `{"enableAllProjectMcpServers": true}`, "/w/.mcp.json": server}, nil, above},
		{"Claude Code, all approved, both", tree{claude: trusts("/w", ""),
			settings: `{"enableAllProjectMcpServers": true}`, "/w/.mcp.json": server}, nil, "-"},
		{"Claude Code, approved by the project's entry, above",
			tree{claude: trusts("/w/p", `, "enabledMcpjsonServers": ["s"]`),
				"/w/.mcp.json": server}, nil, above},
		{"Claude Code, approved by the repository's entry", tree{claude: trusts("/w",
			`, "enabledMcpjsonServers": ["s"]`), root: "", "/w/.mcp.json": server}, nil, "-"},
		{"Claude Code, settings above", tree{claude: trusts("/w/p", ""), root: "",
			"/w/.claude/settings.json": `{"enableAllProjectMcpServers": true}`, "/w/p/.mcp.json": server},
			nil, "it is not yet approved in Claude Code"},
		{"Claude Code, a command above", tree{claude: trusts("/w/p", `, "enabledMcpjsonServers": ["s"]`),
			root: "",
			"/w/.mcp.json": `{"mcpServers": {"s": {"type": "http", "url": "https://h/mcp", ` +
				`"headersHelper": "./token"}}}`}, nil, above},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Scan(tt.files.fs(), owned(tt.files, tt.others))
			got := ""
			for _, p := range c.Problems {
				got = p.Reason
			}
			if len(c.Servers) == 1 {
				got = "-"
			}
			if got != tt.reason {
				t.Errorf("got %q, want %q", got, tt.reason)
			}
		})
	}
}
