package discovery

import (
	"strings"
	"testing"
)

func TestApproval(t *testing.T) {
	const (
		notYet   = "s: it is not yet approved in Claude Code"
		distrust = "s: it is approved in Claude Code, but this project is not yet trusted there"
		rejected = "s: it was rejected in Claude Code, in "
		approve  = `{"enabledMcpjsonServers": ["s"]}`
		all      = `{"enableAllProjectMcpServers": true}`
		reject   = `{"disabledMcpjsonServers": ["s"]}`
		user     = "/home/u/.claude/settings.json"
		project  = "/w/p/.claude/settings.json"
		local    = "/w/p/.claude/settings.local.json"
		entries  = "/home/u/.claude.json"
		trusted  = `{"projects": {"/w": {"hasTrustDialogAccepted": true}}}`
		refused  = `{"projects": {"/w/p": {"hasTrustDialogAccepted": false}}}`
		admin    = "/etc/claude-code/managed-settings.json"
	)
	for _, tt := range []struct {
		name    string
		files   tree
		problem string // empty: it is used
	}{
		{"nothing said", tree{}, notYet},
		{"approved in the project's entry", tree{"/home/u/.claude.json": `{"projects": {"/w/p": ` + approve +
			`}}`}, ""},
		{"all approved in the project's entry", tree{"/home/u/.claude.json": `{"projects": {"/w/p": ` + all +
			`}}`}, ""},
		{"approved in another project's entry", tree{"/home/u/.claude.json": `{"projects": {"/w": ` +
			approve + `}}`}, notYet},
		{"rejected in the project's entry", tree{"/home/u/.claude.json": `{"projects": {"/w/p": ` +
			`{"enabledMcpjsonServers": ["s"], "disabledMcpjsonServers": ["s"]}}}`},
			rejected + "/home/u/.claude.json (Claude Code, user)"},
		{"approved in the entry of a project that isn't trusted",
			tree{entries: `{"projects": {"/w/p": {"hasTrustDialogAccepted": false, ` +
				`"enabledMcpjsonServers": ["s"]}}}`}, ""},
		{"approved by the user", tree{user: approve, entries: trusted}, ""},
		{"all approved by the user", tree{user: all, entries: trusted}, ""},
		{"approved by the administrator", tree{admin: approve, entries: trusted}, ""},
		{"approved by the user, in a strange repository", tree{user: approve}, distrust},
		{"all approved by the user, in a strange repository", tree{user: all, entries: refused}, distrust},
		{"approved by the administrator, in a strange repository", tree{admin: approve, entries: refused},
			distrust},
		{"another project is trusted", tree{user: approve,
			entries: `{"projects": {"/w/q": {"hasTrustDialogAccepted": true}}}`}, distrust},
		{"another one approved", tree{user: `{"enabledMcpjsonServers": ["t"]}`}, notYet},
		{"a repository can't approve its own", tree{project: approve, local: all}, notYet},
		{"a trusted one can", tree{project: approve, "/home/u/.claude.json": trusted}, ""},
		{"a trusted one can, for itself only", tree{local: all, "/home/u/.claude.json": trusted}, ""},
		{"rejected by anybody", tree{user: all, project: reject}, rejected + project +
			" (Claude Code, project settings)"},
		{"all but one", tree{user: `{"enableAllProjectMcpServers": true, "disabledMcpjsonServers": ["s"]}`},
			rejected + user + " (Claude Code, user settings)"},
		{"a file with comments gives nothing", tree{user: "// yes\n" + all}, notYet},
		{"a file with comments takes away", tree{user: all, local: "// no\n" + reject}, rejected + local +
			" (Claude Code, local settings)"},
		{"no list", tree{user: `{"enabledMcpjsonServers": "s"}`}, notYet},
		{"not quite true", tree{user: `{"enableAllProjectMcpServers": "true"}`}, notYet},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Scan(tt.files.with("/w/p/.mcp.json", `{"mcpServers": {"s": {"command": "x"}}}`).fs(),
				linux())
			var got string
			for _, p := range c.Problems {
				if p.Server == "s" {
					got = "s: " + p.Reason
				}
			}
			if got != tt.problem {
				t.Errorf("problem %q, want %q", got, tt.problem)
			}
			if used := len(c.Servers) == 1; used != (tt.problem == "") {
				t.Errorf("servers %v", c.Servers)
			}
		})
	}
	t.Run("in a home directory the user's settings are the user's", func(t *testing.T) {
		env := linux()
		env.Dir = env.Home
		files := tree{"/home/u/.mcp.json": `{"mcpServers": {"s": {"command": "x"}}}`, user: approve,
			entries: `{"projects": {"/home/u": {"hasTrustDialogAccepted": true}}}`}
		check(t, Scan(files.fs(), env), []string{"s: x"}, nil)
	})
}

func TestPolicy(t *testing.T) {
	const (
		managedMCP      = "/etc/claude-code/managed-mcp.json"
		managedSettings = "/etc/claude-code/managed-settings.json"
		user            = "/home/u/.claude/settings.json"
		project         = "/w/p/.claude/settings.json"
		cursor          = "/home/u/.cursor/mcp.json"
		deny            = "Claude Code's settings deny it, in "
		allow           = "Claude Code's settings don't allow it: it is not in allowedMcpServers of "
	)
	for _, tt := range []struct {
		name     string
		vars     []string
		files    tree
		servers  []string
		problems []string
	}{
		{"denied by name", nil, tree{user: `{"deniedMcpServers": [{"serverName": "a"}]}`},
			[]string{"b: npx b", "c: c"}, []string{"a: " + deny + user + " (Claude Code, user settings)"}},
		{"denied by command", nil, tree{user: `{"deniedMcpServers": [{"serverCommand": ["npx", "b"]}, ` +
			`{"serverCommand": ["npx"]}, {"serverUrl": "https://*"}]}`},
			[]string{"a: a", "c: c"}, []string{"b: " + deny + user + " (Claude Code, user settings)"}},
		{"denied by a command with a variable", []string{"WHAT=b"},
			tree{user: `{"deniedMcpServers": [{"serverCommand": ["${NPX:-npx}", "${WHAT}"]}]}`},
			[]string{"a: a", "c: c"}, []string{"b: " + deny + user + " (Claude Code, user settings)"}},
		{"denied by the project", nil, tree{project: `{"deniedMcpServers": [{"serverName": "a"}]}`},
			[]string{"b: npx b", "c: c"}, []string{"a: " + deny + project +
				" (Claude Code, project settings)"}},
		{"denied in a drop-in", nil,
			tree{"/etc/claude-code/managed-settings.d/10.json": `{"deniedMcpServers": [{"serverName": ` +
				`"a"}]}`},
			[]string{"b: npx b", "c: c"}, []string{"a: " + deny +
				"/etc/claude-code/managed-settings.d/10.json (Claude Code, managed settings)"}},
		{"allowed by name", nil, tree{user: `{"allowedMcpServers": [{"serverName": "a"}, {"serverUrl": ` +
			`"https://x"}]}`},
			[]string{"a: a", "c: c"}, []string{"b: " + allow + user + " (Claude Code, user settings)"}},
		{"a command in the list ends the names", nil,
			tree{user: `{"allowedMcpServers": [{"serverName": "a"}, {"serverCommand": ["npx", "b"]}]}`},
			[]string{"b: npx b", "c: c"}, []string{"a: " + allow + user + " (Claude Code, user settings)"}},
		{"nothing is allowed", nil, tree{user: `{"allowedMcpServers": []}`}, []string{"c: c"}, []string{
			"a: " + allow + user + " (Claude Code, user settings)", "b: " + allow + user +
				" (Claude Code, user settings)"}},
		{"the user widens the list", nil,
			tree{managedSettings: `{"allowedMcpServers": [{"serverName": "a"}]}`,
				user: `{"allowedMcpServers": [{"serverName": "b"}]}`},
			[]string{"a: a", "b: npx b", "c: c"}, nil},
		{"or may not", nil, tree{managedSettings: `{"allowManagedMcpServersOnly": true, ` +
			`"allowedMcpServers": [{"serverName": "a"}]}`, user: `{"allowedMcpServers": [{"serverName": ` +
			`"b"}]}`},
			[]string{"a: a", "c: c"}, []string{"b: " + allow + managedSettings +
				" (Claude Code, managed settings)"}},
		{"an untrusted project may not", nil, tree{managedSettings: `{"allowedMcpServers": ` +
			`[{"serverName": "a"}]}`, project: `{"allowedMcpServers": [{"serverName": "b"}]}`},
			[]string{"a: a", "c: c"}, []string{"b: " + allow + managedSettings +
				" (Claude Code, managed settings)"}},
		{"what denies wins", nil, tree{user: `{"allowedMcpServers": [{"serverName": "a"}], ` +
			`"deniedMcpServers": [{"serverName": "a"}]}`}, []string{"c: c"}, []string{
			"a: " + deny + user + " (Claude Code, user settings)", "b: " + allow + user +
				" (Claude Code, user settings)"}},
		{"only the administrator's", nil, tree{managedMCP: `{"mcpServers": {"m": {"command": "m"}}}`},
			[]string{"c: c", "m: m"}, []string{
				"a: Claude Code's administrator allows only the servers of " + managedMCP +
					" (Claude Code, managed)",
				"b: Claude Code's administrator allows only the servers of " + managedMCP +
					" (Claude Code, managed)"}},
		{"none at all", nil, tree{managedMCP: `{}`}, []string{"c: c"}, []string{
			"a: Claude Code's administrator allows only the servers of " + managedMCP +
				" (Claude Code, managed)",
			"b: Claude Code's administrator allows only the servers of " + managedMCP +
				" (Claude Code, managed)"}},
		{"the administrator's need not be allowed, and may be denied", nil, tree{
			managedMCP: `{"mcpServers": {"m": {"command": "m"}, "n": {"command": "n"}}}`,
			user:       `{"allowedMcpServers": [], "deniedMcpServers": [{"serverName": "n"}]}`},
			[]string{"c: c", "m: m"}, []string{
				"n: " + deny + user + " (Claude Code, user settings)",
				"a: Claude Code's administrator allows only the servers of " + managedMCP +
					" (Claude Code, managed)",
				"b: Claude Code's administrator allows only the servers of " + managedMCP +
					" (Claude Code, managed)"}},
		{"the administrator's rules can't be read", nil, tree{managedSettings: `{"deniedMcpServers": [`},
			[]string{"c: c"}, []string{
				managedSettings + ": it is not valid JSON: it ends too early at line 1, column 23",
				"a: it can't be told whether Claude Code's administrator allows it: " + managedSettings +
					" (Claude Code, managed settings) can't be used",
				"b: it can't be told whether Claude Code's administrator allows it: " + managedSettings +
					" (Claude Code, managed settings) can't be used"}},
		{"the user's rules can't be read", nil, tree{user: `{"deniedMcpServers": [`},
			[]string{"a: a", "b: npx b", "c: c"}, []string{
				user + ": it is not valid JSON: it ends too early at line 1, column 23"}},
		{"a rule that isn't understood", nil, tree{user: `{"deniedMcpServers": [{"serverName": "a"}, ` +
			`{"name": "b"}, "b"]}`}, []string{"b: npx b", "c: c"}, []string{
			user + `: entry 2 of its "deniedMcpServers" is not understood`, user +
				`: entry 3 of its "deniedMcpServers" is not understood`,
			"a: " + deny + user + " (Claude Code, user settings)"}},
		{"plugins only", nil, tree{managedSettings: `{"strictPluginOnlyCustomization": ["mcp"]}`},
			[]string{"c: c"}, []string{
				"a: Claude Code's administrator allows only servers of plugins, in " + managedSettings +
					" (Claude Code, managed settings)",
				"b: Claude Code's administrator allows only servers of plugins, in " + managedSettings +
					" (Claude Code, managed settings)"}},
		{"run by Claude Code, its rules hold for all", []string{"CLAUDECODE=1"},
			tree{user: `{"deniedMcpServers": [{"serverName": "c"}]}`},
			[]string{"a: a", "b: npx b"}, []string{"c: " + deny + user + " (Claude Code, user settings)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := tt.files.with("/home/u/.claude.json",
				`{"mcpServers": {"a": {"command": "a"}, "b": {"command": "npx", "args": ["b"]}}}`).
				with(cursor, `{"mcpServers": {"c": {"command": "c"}}}`)
			check(t, Scan(files.fs(), linux(tt.vars...)), tt.servers, tt.problems)
		})
	}
}

func TestDisabledAndReserved(t *testing.T) {
	files := tree{"/home/u/.claude.json": `{"mcpServers": {"a": {"command": "a"},
	"workspace": {"command": "w"}, "b": {"command": "b"}},
		"projects": {"/w/p": {"disabledMcpServers": ["a"]}, "/w/q": {"disabledMcpServers": ["b"]}}}`}
	check(t, Scan(files.fs(), linux()), []string{"b: b"}, []string{
		"a: it is disabled in /home/u/.claude.json (Claude Code, user)",
		"workspace: Claude Code keeps this name for a server of its own and skips it"})
}

func TestManagedPlaces(t *testing.T) {
	const deny = `{"deniedMcpServers": [{"serverName": "a"}]}`
	for _, tt := range []struct {
		goos, home, file string
	}{
		{"linux", "/home/u", "/etc/claude-code/managed-settings.json"},
		{"darwin", "/Users/u", "/Library/Application Support/ClaudeCode/managed-settings.json"},
		{"windows", `C:\Users\u`, `C:\Program Files\ClaudeCode\managed-settings.json`},
	} {
		t.Run(tt.goos, func(t *testing.T) {
			files := tree{tt.file: deny, tt.home + "/.claude.json": `{"mcpServers": {"a": {"command": "a"}}}`}
			c := Scan(files.fs(), Env{Home: tt.home, GOOS: tt.goos})
			if len(c.Servers) != 0 || len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Reason,
				tt.file) {
				t.Errorf("got %v", c)
			}
		})
	}
}
