package discovery

import (
	"fmt"
	"testing"
)

// TestProjectsCode: what the user has set up for all projects doesn't run what lies in the one that
// happens to be the working directory, nor does an approval by name run a command line of a project
// that isn't trusted.
func TestProjectsCode(t *testing.T) {
	const (
		vscode = "/home/u/.config/Code/User/mcp.json"
		claude = "/home/u/.claude.json"
		helper = `{"mcpServers": {"s": {"type": "http", "url": "https://h/mcp", "headersHelper": "./token"}}}`
		file   = "s: its envFile is of whatever project the bridge runs in, and whether VS Code trusts " +
			"that can't be read from outside"
		shell = "s: its headersHelper is a command, and this project is not yet trusted in Claude Code"
	)
	const plugins, ofProject = "plugin:p:s: its ", " is of whatever project the bridge runs in, and this " +
		"one is not yet trusted in Claude Code"
	plugin := func(entry string, trusted bool) tree {
		return installed(on, tree{".mcp.json": `{"s": ` + entry + `}`,
			claude: fmt.Sprintf(`{"projects": {"/w/p": {"hasTrustDialogAccepted": %v}}}`, trusted)})
	}
	for _, tt := range []struct {
		name    string
		files   tree
		problem string // empty: it is used
	}{
		{"variables of the project", tree{vscode: `{"servers": {"s": {"command": "x", "envFile": ` +
			`"${workspaceFolder}/.env"}}}`, "/w/p/.env": "BASH_ENV=evil.sh"}, file},
		{"a program of the project", tree{vscode: `{"servers": {"s": {"command": "${workspaceFolder}/x"}}}`},
			"s: its command is of whatever project the bridge runs in, and whether VS Code trusts that " +
				"can't be read from outside"},
		{"the project as an argument", tree{vscode: `{"servers": {"s": {"command": "x", "args": ` +
			`["${workspaceFolder}"]}}}`}, ""},
		{"variables of the user's own", tree{vscode: `{"servers": {"s": {"command": "x", "envFile": ` +
			`"${userHome}/x.env"}}}`, "/home/u/x.env": "A=b"}, ""},
		{"a command line of an approved server", tree{"/w/p/.mcp.json": helper,
			claude: `{"projects": {"/w/p": {"enabledMcpjsonServers": ["s"], "hasTrustDialogAccepted": ` +
				`false}}}`}, shell},
		{"and of one in a trusted project", tree{"/w/p/.mcp.json": helper,
			claude: `{"projects": {"/w/p": {"enabledMcpjsonServers": ["s"], "hasTrustDialogAccepted": ` +
				`true}}}`}, ""},
		{"a command line of the local scope", tree{claude: `{"projects": {"/w/p": ` + helper + `}}`}, shell},
		{"of the user's scope", tree{claude: helper}, ""},
		{"a program of the project, by a plugin", plugin(`{"command": "${CLAUDE_PROJECT_DIR}/tools/x"}`,
			false), plugins + "command" + ofProject},
		{"with a default", plugin(`{"command": "${CLAUDE_PROJECT_DIR:-/w}/tools/x"}`, false), plugins +
			"command" + ofProject},
		{"a command line of the project, by a plugin",
			plugin(`{"type": "http", "url": "https://h", "headersHelper": "\"$CLAUDE_PROJECT_DIR\"/tok"}`,
				false), plugins + "headersHelper" + ofProject},
		{"of a trusted project, by a plugin", plugin(`{"command": "${CLAUDE_PROJECT_DIR}/tools/x"}`, true),
			""},
		{"the project as an argument of a plugin's",
			plugin(`{"command": "x", "args": ["${CLAUDE_PROJECT_DIR}"]}`, false), ""},
		{"a program of the plugin's own", plugin(`{"command": "${CLAUDE_PLUGIN_ROOT}/x"}`, false), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Scan(tt.files.fs(), linux())
			var got string
			for _, p := range c.Problems {
				got = p.Server + ": " + p.Reason
				if p.State != Unapproved {
					t.Errorf("%+v", p)
				}
			}
			if got != tt.problem || len(c.Servers) != 1 == (tt.problem == "") {
				t.Errorf("problem %q, want %q; %d servers", got, tt.problem, len(c.Servers))
			}
		})
	}
}
