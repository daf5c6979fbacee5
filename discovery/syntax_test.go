package discovery

import (
	"strings"
	"testing"
)

// syntaxCase is what is to come of one file: a server, or a part of a problem.
type syntaxCase struct{ name, data, server, problem string }

func TestTOML(t *testing.T) {
	checkSyntax(t, "/home/u/.codex/config.toml", []syntaxCase{
		{"empty", "", "", ""},
		{"only comments", "# [mcp_servers.a]\n", "", ""},
		{"byte order mark", "\ufeff[mcp_servers.a]\ncommand = \"a\"", "a: a", ""},
		{"inline", `mcp_servers = {a = {command = "a", args = ["1"]}}`, "a: a 1", ""},
		{"dotted", "mcp_servers.a.command = 'a'", "a: a", ""},
		{"other values", "x = 1.5\ny = 1979-05-27T07:32:00Z\nz = [[1, 2], [true]]\nw = nan\nd = " +
			"1979-05-27\n[[list]]\na = 1\n[mcp_servers.a]\ncommand = \"a\"\nenv = {N = 1, B = true}",
			"a: a B=true N=1", ""},
		{"brackets in strings and comments", "s = \"" + strings.Repeat("[", 300) + "\"\nt = '''\n" +
			strings.Repeat("{", 300) + "'''\n# " + strings.Repeat("[", 300) +
			"\n[mcp_servers.a]\ncommand = 'a'", "a: a", ""},
		{"cut off", "[mcp_servers.a]\nargs = [\"sk-secret", "", "it is not valid TOML at line 2"},
		{"a table twice", "[mcp_servers.a]\ncommand = 'a'\n[mcp_servers.a]\n", "",
			"it is not valid TOML at line 3"},
		{"servers an array", "mcp_servers = []", "", `its "mcp_servers" is an array, not an object`},
		{"deep", "a = " + strings.Repeat("[", 300) + strings.Repeat("]", 300), "",
			"it nests more than 200 levels deep"},
		{"a long key", "x." + strings.Repeat("a.", 300) + "b = 1", "", "it nests more than 200 levels deep"},
		{"very many tables", "[a]\n" + strings.Repeat("[a.b]\n", maxMembers/2), "",
			"it has more than 8192 tables, keys and parts of keys"},
		{"very many keys", strings.Repeat("a = 1\n", maxMembers+1), "",
			"it has more than 8192 tables, keys and parts of keys"},
		{"very many parts of keys", strings.Repeat("a.b.c = 1\n", maxMembers/3+1), "",
			"it has more than 8192 tables, keys and parts of keys"},
		{"large", "# " + strings.Repeat("x", maxSmall), "", "it is larger than 256 KiB, which is the limit"},
		{"Latin-1", "a = \"\xe9\"", "", "it is not UTF-8 at line 1, column 6"},
		{"JSON", `{"mcpServers": {}}`, "", "it is not valid TOML at line 1"},
		{"the key of others", "[mcpServers.a]\ncommand = 'a'", "",
			`it has "mcpServers" but no "mcp_servers"`},
	})
}

func TestYAML(t *testing.T) {
	checkSyntax(t, "/home/u/.config/goose/config.yaml", []syntaxCase{
		{"empty", "", "", ""},
		{"only comments", "# nothing\n---\n", "", ""},
		{"null", "null", "", ""},
		{"an anchor", "x: &x {type: stdio, cmd: a}\nextensions:\n  a: *x\n", "a: a", ""},
		{"merged, own members first", "x: &x {cmd: theirs, args: [\"1\"]}\nextensions:\n  a:\n    cmd: " +
			"mine\n    <<: *x\n", "a: mine 1", ""},
		{"merged of several", "x: &x {cmd: first}\ny: &y {cmd: second, args: [y]}\nextensions:\n  a:\n    " +
			"<<: [*x, *y]\n", "a: first y", ""},
		{"numbers as they are written", "extensions: {a: {cmd: a, envs: {A: 010, B: 1_000, C: 0x1f, D: " +
			"1.50, E: yes, F: true}}}", "a: a A=010 B=1_000 C=0x1f D=1.50 E=yes F=true", ""},
		{"an argument that is a number", "extensions: {a: {cmd: a, args: [-p, 8080]}}", "",
			"its args[1] is a number, not a string"},
		{"a second document is not read", "extensions: {a: {cmd: a}}\n---\nextensions: {b: {cmd: b}}", "a: a",
			""},
		{"cut off", "extensions: {a: {cmd: \"sk-secret", "", "it is not valid YAML"},
		{"an unknown anchor", "extensions: *sk-secret", "", "it is not valid YAML"},
		{"a list", "- a", "", "it holds an array, not a mapping"},
		{"a word", "text", "", "it holds a string, not a mapping"},
		{"servers a list", "extensions: [a]", "", `its "extensions" is an array, not an object`},
		{"deep", strings.Repeat("[", 300) + strings.Repeat("]", 300), "",
			"it nests more than 200 levels deep at line 1"},
		{"an anchor of itself", "extensions: &x {a: *x}", "", "it nests more than 200 levels deep at line 1"},
		{"large", "# " + strings.Repeat("x", maxSmall), "", "it is larger than 256 KiB, which is the limit"},
		{"a long text again and again", "x: &x " + strings.Repeat("y", 1<<17) + "\nz: [" +
			strings.Repeat("*x, ", 100) +
			"]", "", "its values have more than 4194304 bytes, aliases followed"},
		{"a long key again and again", "x: &x\n  ? " + strings.Repeat("y", 1<<17) + "\n  : 1\nz: [" +
			strings.Repeat("*x, ", 100) +
			"]", "", "its values have more than 4194304 bytes, aliases followed"},
		{"laughs", laughs(), "", "it has more than 65536 values, aliases followed"},
		{"a tab", "extensions:\n\ta: {}", "", "it is not valid YAML at line 2"},
	})
}

// laughs is a short file that stands for very many values.
func laughs() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		last, next := string(rune('0'+i)), string(rune('1'+i))
		b.WriteString("a" + next + ": &a" + next + " [" + strings.Repeat("*a"+last+",", 9) + "*a" + last +
			"]\n")
	}
	return b.String()
}

// checkSyntax checks a scan of one file at a time.
func checkSyntax(t *testing.T, path string, cases []syntaxCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			c := Scan(tree{path: tt.data}.fs(), linux())
			servers, problems := brief(c)
			if got := strings.Join(servers, "\n"); got != tt.server {
				t.Errorf("servers %q, want %q", got, tt.server)
			}
			switch got := strings.Join(problems, "\n"); {
			case tt.problem == "" && got != "" || !strings.Contains(got, tt.problem):
				t.Errorf("problems %q, want %q", got, tt.problem)
			case strings.Contains(got, "secret"):
				t.Errorf("the problem %q tells a secret", got)
			case tt.problem != "" && c.Problems[0].Next == "":
				t.Error("no next step")
			}
		})
	}
}

// FuzzTOML and FuzzYAML: whatever a file holds, the parsers return, and what they make is a JSON
// tree of a bounded depth, or a refusal. TestFilling: what the dialects have in common.
func TestFilling(t *testing.T) {
	big := tree{"/home/u/.codeium/windsurf/mcp_config.json": `{"mcpServers": {"s": {"command": "x", ` +
		`"args": ["` + strings.Repeat("${file:/big}", 3) + `"]}}}`, "/big": strings.Repeat("x", 1<<19)}
	check(t, Scan(big.fs(), linux()), nil, []string{"s: its args[0] is longer than 1048576 bytes when it " +
		"is filled in"})

	self := tree{"/home/u/.claude.json": `{"mcpServers": {"s": {"command": "${BRIDGE}"}, "e": {"command": ` +
		`"${EMPTY:-}"}, "n": {"command": "x", "env": {"A": "${NUL}"}}}}`}
	check(t, Scan(self.fs(), linux("BRIDGE=/opt/bin/mcp-bridge-1.0", "NUL=a\x00b")), nil, []string{
		"e: its command is empty when it is filled in", "n: its env.A has a NUL character, with which no " +
			"program can be started", "s: this is mcp-bridge itself"})

	// What a variable holds is not filled in again, and rules see what would be run.
	twice := tree{"/home/u/.claude.json": `{"mcpServers": {"s": {"command": "${A}"}, "d": {"command": ` +
		`"${B}"}}}`,
		"/home/u/.claude/settings.json": `{"deniedMcpServers": [{"serverCommand": ["evil"]}]}`}
	check(t, Scan(twice.fs(), linux("A=${B}", "B=evil")), []string{"s: ${B}"}, []string{
		"d: Claude Code's settings deny it, in /home/u/.claude/settings.json (Claude Code, user settings)"})
}

// TestListedFile: a host's file that MCP_BRIDGE_CONFIG lists is read in the host's dialect, and
// needs no approval.
func TestListedFile(t *testing.T) {
	env := linux("KEY=k")
	env.ConfigPaths = []string{"/w/p/.cursor/mcp.json", "/w/p/.codex/config.toml", "/w/p/opencode.json",
		"/x/mine.toml", "/x/mine.yaml"}
	files := tree{
		"/w/p/.cursor/mcp.json": `{"mcpServers": {"a": {"command": "a", "args": ["${env:KEY}", ` +
			`"${workspaceFolder}"]}}}`,
		"/w/p/.codex/config.toml": "[mcp_servers.b]\ncommand = 'b'\nargs = ['${KEY}']\n",
		"/w/p/opencode.json":      `{"mcp": {"c": {"type": "local", "command": ["c", "{env:KEY}"]}}}`,
		"/x/mine.toml":            "[mcpServers.d]\ncommand = 'd'\nargs = ['${KEY}']\n",
		"/x/mine.yaml":            "mcpServers: {e: {command: e}}",
	}
	check(t, Scan(files.fs(), env), []string{"a: a k /w/p", "b: b ${KEY}", "c: c k", "d: d k", "e: e"}, nil)
}
