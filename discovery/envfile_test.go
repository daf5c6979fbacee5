package discovery

import (
	"path"
	"testing"
)

func TestEnvFile(t *testing.T) {
	files := tree{
		"/home/u/.cursor/mcp.json": `{"mcpServers": {"a": {"command": "a", "env": {"MINE": "1"},
		"envFile": "${userHome}/.env"}, "gone": {"command": "g", "envFile": "/no"},
			"bad": {"command": "b", "envFile": "/bad"}, "odd": {"command": "o", "envFile": 7}}}`,
		"/home/u/.config/Code/User/mcp.json": `{"servers": {"code": {"command": "c", "envFile": ` +
			`"sub/.env"}}}`,
		"/home/u/.env":                       "MINE=theirs\nTHEIRS=2\n",
		"/home/u/.config/Code/User/sub/.env": "X=1", "/bad": "secret",
	}
	c := Scan(files.fs(), linux())
	check(t, c, []string{"a: a MINE=1 THEIRS=2", "code: c X=1"}, []string{
		"bad: its envFile /bad can't be understood at line 1", "gone: its envFile is /no, and of that: it " +
			"does not exist", "odd: its envFile is a number, not a string"})
}

// TestEnvFileOfARepository: a repository has no say in the variables of the servers that its user
// has set up for all projects.
func TestEnvFileOfARepository(t *testing.T) {
	const entry = `{"command": "c", "envFile": ".env"}`
	for _, tt := range []struct{ file, key string }{
		{"/home/u/.cursor/mcp.json", "mcpServers"}, {"/home/u/.config/Code/User/mcp.json", "servers"},
		{"/etc/mine.json", "mcpServers"}, {"/home/u/.config/mcp/mcp.json", "mcpServers"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			files := tree{tt.file: `{"` + tt.key + `": {"s": ` + entry + `}}`, path.Dir(tt.file) +
				"/.env": "MINE=1",
				"/w/p/.env": "NODE_OPTIONS=--require /w/p/evil.js"}
			env := linux()
			env.ConfigPaths = []string{"/etc/mine.json"}
			if tt.file != env.ConfigPaths[0] {
				env.ConfigPaths = nil
			}
			check(t, Scan(files.fs(), env), []string{"s: c MINE=1"}, nil)
		})
	}
}
