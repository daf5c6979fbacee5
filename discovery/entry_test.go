package discovery

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

func TestEntry(t *testing.T) {
	for _, tt := range []struct {
		name    string
		entry   string
		server  string // what is made of it
		problem string // or why not
	}{
		{"least", `{"command": "x"}`, "s: x", ""},
		{"whole", `{"type": "stdio", "command": "x", "args": ["a", ""], "env": {"B": "2", "A": "1"}, ` +
			`"description": "d"}`, "s: x a  A=1 B=2", ""},
		{"nulls", `{"type": null, "command": "x", "args": null, "env": null, "cwd": null, "disabled": ` +
			`null, "envFile": null}`, "s: x", ""},
		{"a member twice", `{"command": "first", "command": "last"}`, "s: last", ""},
		{"env of numbers and booleans", `{"command": "x", "env": {"N": 8080, "F": 1.50, "B": true, "BIG": ` +
			`12345678901234567890}}`, "s: x B=true BIG=12345678901234567890 F=1.50 N=8080", ""},
		{"not an object", `"npx"`, "", "it is a string, not an object"},
		{"null", `null`, "", "it is null, not an object"},
		{"an array", `["npx"]`, "", "it is an array, not an object"},
		{"empty", `{}`, "", "it has no command"},
		{"command misspelt", `{"comand": "x"}`, "", `it has no "command", but a comand`},
		{"blank command", `{"command": " "}`, "", "it has no command"},
		{"command a number", `{"command": 7}`, "", "its command is a number, not a string"},
		{"command an array", `{"command": ["npx", "x"]}`, "", "its command is an array, not a string"},
		{"args a string", `{"command": "x", "args": "a b"}`, "", "its args is a string, not an array"},
		{"args of others", `{"command": "x", "args": ["a", 7]}`, "", "its args[1] is a number, not a string"},
		{"args with null", `{"command": "x", "args": [null]}`, "", "its args[0] is null, not a string"},
		{"env an array", `{"command": "x", "env": ["A=1"]}`, "", "its env is an array, not an object"},
		{"env of objects", `{"command": "x", "env": {"A": {"file": "/x"}}}`, "",
			"its env.A is an object, not a string"},
		{"env with null", `{"command": "x", "env": {"A": null}}`, "", "its env.A is null, not a string"},
		{"env without a name", `{"command": "x", "env": {"": "1"}}`, "",
			"its env has a variable whose name is empty or has a = or a NUL in it"},
		{"env with a bad name", `{"command": "x", "env": {"A=B": "1"}}`, "",
			"its env has a variable whose name is empty or has a = or a NUL in it"},
		{"NUL in an argument", `{"command": "x", "args": ["a\u0000b"]}`, "",
			"its args[0] has a NUL character, with which no program can be started"},
		{"NUL in a variable", `{"command": "x", "env": {"A": "\u0000"}}`, "",
			"its env.A has a NUL character, with which no program can be started"},
		{"type a number", `{"type": 1, "command": "x"}`, "", "its type is a number, not a string"},
		{"type unknown", `{"type": "carrier-pigeon", "command": "x"}`, "", "its type isn't known"},
		{"disabled", `{"command": "x", "disabled": true}`, "", "it is disabled there"},
		{"not enabled", `{"command": "x", "enabled": false}`, "", "it is disabled there"},
		{"enabled", `{"command": "x", "disabled": false, "enabled": true}`, "s: x", ""},
		{"one switch of two is enough", `{"command": "x", "disabled": true, "enabled": true}`, "",
			"it is disabled there"},
		{"disabled a string", `{"command": "x", "disabled": "yes"}`, "",
			"its disabled is a string, not true or false"},
		{"disabled comes before remote", `{"url": "https://x", "disabled": true}`, "",
			"it is disabled there"},
		{"url", `{"url": "https://x"}`, "s: http https://x", ""},
		{"streamable", `{"type": "streamable-http", "url": "https://x"}`, "s: http https://x", ""},
		{"sse", `{"type": "sse", "url": "https://x"}`, "s: sse https://x", ""},
		{"variable in command", `{"command": "${HOME}/bin/x"}`, "",
			"its command asks for ${HOME}, which only Cursor can fill in"},
		{"variable with a default", `{"command": "x", "args": ["--key=${KEY:-none}"]}`, "",
			"its args[0] asks for ${KEY}, which only Cursor can fill in"},
		{"variable in env", `{"command": "x", "env": {"A": "1", "KEY": "${KEY}"}}`, "",
			"its env.KEY asks for ${KEY}, which only Cursor can fill in"},
		{"a lone dollar", `{"command": "x", "args": ["$HOME", "${", "}${"]}`, "s: x $HOME ${ }${", ""},
		{"envFile", `{"command": "x", "envFile": ".env"}`, "",
			"its envFile is /home/u/.cursor/.env, and of that: it does not exist"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Scan(tree{"/home/u/.cursor/mcp.json": `{"mcpServers": {"s": ` + tt.entry + `}}`}.fs(),
				linux())
			if tt.problem != "" {
				check(t, c, nil, []string{"s: " + tt.problem})
				if c.Problems[0].Next == "" {
					t.Error("no next step")
				}
				return
			}
			check(t, c, []string{tt.server}, nil)
		})
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct{ name, shown, reason string }{
		{"plain", "", ""},
		{"With spaces. And dots/слова 👩‍💻", "", ""},
		{"", `""`, "its name is empty"},
		{"  ", `"  "`, "its name is empty"},
		{"a\nb", `"a\nb"`, "its name has control or invisible characters"},
		{"\x1b[2Jx", `"\x1b[2Jx"`, "its name has control or invisible characters"},
		{"a\u202eb", `"a\u202eb"`, "its name has control or invisible characters"},
		{"a\u3164", `"a\u3164"`, "its name has control or invisible characters"},
		{strings.Repeat("é", 65), `"` + strings.Repeat("é", 64) + `"…`, "its name is longer than 128 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Scan(tree{"/home/u/.cursor/mcp.json": fmt.Sprintf(`{"mcpServers": {%s: {"command": "x"}}}`,
				quoteJSON(tt.name))}.fs(), linux())
			if tt.reason == "" {
				check(t, c, []string{tt.name + ": x"}, nil)
				return
			}
			check(t, c, nil, []string{tt.shown + ": " + tt.reason})
		})
	}
}

func TestFiles(t *testing.T) {
	deep := strings.Repeat("[", 1<<20)
	for _, tt := range []struct {
		name, data string
		server     bool
		problem    string
	}{
		{"byte order mark", "\ufeff" + one, true, ""},
		{"comments and trailing commas", "// x\n{\"mcpServers\": {/* y */ \"fs\": {\"command\": \"x\",},},}",
			true, ""},
		{"nothing about servers", `{"theme": "dark"}`, false, ""},
		{"no servers", `{"mcpServers": {}}`, false, ""},
		{"null servers", `{"mcpServers": null}`, false, ""},
		{"empty", "", false, "it is empty"},
		{"blank", " \n\t", false, "it is empty"},
		{"UTF-16", "\xff\xfe{\x00}\x00", false, "it is written in UTF-16"},
		{"NUL", "{}\n \x00", false, "it has a NUL byte at line 2, column 2"},
		{"Latin-1", "{\"a\": \"\xe9\"}", false, "it is not UTF-8 at line 1, column 8"},
		{"cut off", `{"mcpServers": {"fs": {"command"`, false,
			"it is not valid JSON: it ends too early at line 1, column 33"},
		{"a comma too few", "{\"a\": 1\n \"b\": 2}", false,
			"it is not valid JSON: invalid character '\"' after object value (expecting ',' or '}') at " +
				"line 2, column 2"},
		{"a bad escape", `{"env": {"KEY": "sk-secret\x"}}`, false,
			"it is not valid JSON: a value is malformed at line 1, column 17"},
		{"an array", `[]`, false, "it holds an array, not an object"},
		{"a string", `"{}"`, false, "it holds a string, not an object"},
		{"servers an array", `{"mcpServers": [{"name": "fs"}]}`, false,
			`its "mcpServers" is an array, not an object`},
		{"deep", deep, false, "it nests more than 200 levels deep at line 1, column 201"},
		{"deep after a comment", "// \"\n" + deep, false,
			"it nests more than 200 levels deep at line 2, column 201"},
		{"deep in a string", `{"a": "` + deep + `\"` + deep + `", "mcpServers": {"fs": {"command": "x"}}}`,
			true, ""},
		{"not JSON at all", "mcpServers:\n  fs:\n", false,
			"it is not valid JSON: a value is malformed at line 1, column 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const path = "/home/u/.cursor/mcp.json"
			c := Scan(tree{path: tt.data}.fs(), linux())
			if tt.problem != "" {
				check(t, c, nil, []string{path + ": " + tt.problem})
				if len(c.Sources) != 0 && !strings.Contains(tt.problem, `"mcpServers"`) {
					t.Errorf("sources %v of a file that can't be read", c.Sources)
				}
				return
			}
			if len(c.Problems) != 0 || (len(c.Servers) == 1) != tt.server {
				t.Errorf("got %v", c)
			}
		})
	}
}

func TestStrictFiles(t *testing.T) {
	const commented = "{\n  // mine\n  \"mcpServers\": {\"fs\": {\"command\": \"x\"}}\n}"
	files := tree{
		"/w/p/.mcp.json": commented, "/home/u/.claude.json": "{\"mcpServers\": {},\n}",
		"/home/u/.config/Claude/claude_desktop_config.json": commented,
	}
	check(t, Scan(files.fs(), linux()), nil, []string{
		"/w/p/.mcp.json: it has a comment or a trailing comma at line 2, column 3, so Claude Code rejects " +
			"the whole file",
		"/home/u/.claude.json: it has a comment or a trailing comma at line 2, column 1, so Claude Code " +
			"rejects the whole file",
		"/home/u/.config/Claude/claude_desktop_config.json: it has a comment or a trailing comma at line " +
			"2, column 3, so Claude Desktop rejects the whole file",
	})
}

func TestUnreadable(t *testing.T) {
	const path = "home/u/.cursor/mcp.json"
	for _, tt := range []struct {
		name string
		fsys fs.FS
		want string
	}{
		{"permission", failing{tree{"/" + path: one}.fs(), map[string]error{path: fs.ErrPermission}},
			"it can't be read: permission denied"},
		{"links in a circle", failing{fstest.MapFS{}, map[string]error{path: syscall.ELOOP}},
			"it can't be read: too many levels of symbolic links"},
		{"a failing disk", failing{fstest.MapFS{}, map[string]error{path: errors.New("input/output error")}},
			"it can't be read: input/output error"},
		{"a parent that is a file", failing{fstest.MapFS{}, map[string]error{path: syscall.ENOTDIR}}, ""},
		{"a directory", fstest.MapFS{path: {Mode: fs.ModeDir}}, "it is a directory, not a file"},
		{"a pipe", fstest.MapFS{path: {Mode: fs.ModeNamedPipe}}, "it is not a regular file"},
		{"huge", fstest.MapFS{path: {Data: make([]byte, config.MaxFile+1)}},
			"it is larger than 16384 KiB, which is the limit"},
		{"huge and denying it", shy{fstest.MapFS{path: {Data: make([]byte, config.MaxFile+1)}}},
			"it is larger than 16384 KiB, which is the limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			if tt.want != "" {
				want = []string{"/" + path + ": " + tt.want}
			}
			check(t, Scan(tt.fsys, linux()), nil, want)
		})
	}
}

// shy is a file system whose files say that they are empty, as those of /proc do.
type shy struct{ fs.FS }

func (s shy) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(s.FS, name)
	if err != nil || info.IsDir() {
		return info, err
	}
	return emptyInfo{info}, nil
}

type emptyInfo struct{ fs.FileInfo }

func (emptyInfo) Size() int64 { return 0 }

func TestManyFiles(t *testing.T) {
	files := tree{}
	for i := range manyFiles + 5 {
		files[fmt.Sprintf("/home/u/.config/mcp/servers/%05d.json", i)] = `{"command": "x"}`
	}
	c := Scan(files.fs(), linux())
	if len(c.Servers) != manyFiles || len(c.Problems) != 1 || c.Servers[manyFiles-1].Name != "00999" {
		t.Errorf("%d servers, problems %v", len(c.Servers), c.Problems)
	}

	var entries strings.Builder
	for i := range maxEntries + 5 {
		fmt.Fprintf(&entries, `"%05d": {"command": "x"},`, i)
	}
	c = Scan(tree{"/home/u/.cursor/mcp.json": `{"mcpServers": {` + entries.String() + `}}`}.fs(), linux())
	if len(c.Servers) != maxEntries || len(c.Problems) != 1 || c.Servers[maxEntries-1].Name != "00999" {
		t.Errorf("%d servers, problems %v", len(c.Servers), c.Problems)
	}
}
