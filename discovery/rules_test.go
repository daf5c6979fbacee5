package discovery

import "testing"

// TestRulesAboutURLs: what Claude Code's settings deny and allow by URL holds as it is written and
// as it is filled in.
func TestRulesAboutURLs(t *testing.T) {
	const (
		user  = "/home/u/.claude/settings.json"
		deny  = "Claude Code's settings deny it, in " + user + " (Claude Code, user settings)"
		allow = "Claude Code's settings don't allow it: it is not in allowedMcpServers of " + user +
			" (Claude Code, user settings)"
	)
	a, b, c := "a: http https://a.example/mcp", "b: http https://b.example:8443/x", "c: c"
	for _, tt := range []struct {
		name     string
		settings string
		servers  []string
		problems []string
	}{
		{"denied by URL", `{"deniedMcpServers": [{"serverUrl": "https://a.example/mcp"}]}`, []string{b, c},
			[]string{"a: " + deny}},
		{"denied by a pattern", `{"deniedMcpServers": [{"serverUrl": "https://*.example:*/*"}]}`,
			[]string{a, c}, []string{"b: " + deny}},
		{"denied, in other letters", `{"deniedMcpServers": [{"serverUrl": "HTTPS://A.example/*"}]}`,
			[]string{b, c}, []string{"a: " + deny}},
		{"denied as it is written", `{"deniedMcpServers": [{"serverUrl": "https://${HOST}/*"}]}`,
			[]string{b, c}, []string{"a: " + deny}},
		{"a pattern is about all of the URL", `{"deniedMcpServers": [{"serverUrl": "a.example"}, ` +
			`{"serverUrl": "https://a.example/mc"}]}`, []string{a, b, c}, nil},
		{"a command says nothing of a URL", `{"deniedMcpServers": [{"serverCommand": ["https://a.example/mcp"]}]}`,
			[]string{a, b, c}, nil},
		{"allowed by URL", `{"allowedMcpServers": [{"serverUrl": "https://a.example/*"}, {"serverName": ` +
			`"b"}, {"serverName": "c"}]}`, []string{a, c}, []string{"b: " + allow}},
		{"allowed by name where no rule is about URLs",
			`{"allowedMcpServers": [{"serverName": "b"}, {"serverCommand": ["c"]}]}`, []string{b,
				c}, []string{"a: " + allow}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := tree{user: tt.settings,
				"/home/u/.claude.json": `{"mcpServers": {"a": {"type": "http", "url": "https://${HOST}/mcp"},
				"b": {"type": "http", "url": "https://b.example:8443/x"}, "c": {"command": "c"}}}`}
			check(t, Scan(files.fs(), linux("HOST=a.example")), tt.servers, tt.problems)
		})
	}
}

// TestStates: each way not to be used has a state of its own.
func TestStates(t *testing.T) {
	files := tree{
		"/home/u/.claude.json": `{"mcpServers": {"invalid": {"command": 1}, "denied": {"command": "d"},
		"itself": {"command": "mcp-bridge"},
			"unusable": {"command": "${NO}"}, "used": {"command": "u"}, "off": {"command": "o"}},
			"projects": {"/w/p": {"disabledMcpServers": ["off"]}}}`,
		"/home/u/.claude/settings.json": `{"deniedMcpServers": [{"serverName": "denied"}]}`,
		"/home/u/.cursor/mcp.json": `{"mcpServers": {"disabled": {"command": "x", "disabled": true}, ` +
			`"used": {"command": "other"}, "same": {"command": "u"}}}`,
		"/w/p/.mcp.json":             `{"mcpServers": {"asked": {"command": "x"}}}`,
		"/home/u/.lmstudio/mcp.json": `{`,
	}
	want := map[string]State{"invalid": Invalid, "denied": Denied, "itself": Itself, "unusable": Unusable,
		"off": Disabled, "disabled": Disabled,
		"used": Shadowed, "same": Duplicate, "asked": Unapproved, "": Broken}
	c := Scan(files.fs(), linux())
	for _, p := range c.Problems {
		if p.State != want[p.Server] {
			t.Errorf("%s: state %q, want %q", p, p.State, want[p.Server])
		}
	}
	if len(c.Problems) != len(want) {
		t.Errorf("%d problems, want %d: %v", len(c.Problems), len(want), c.Problems)
	}
}
