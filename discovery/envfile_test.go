package discovery

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDotenv(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       map[string]string
		bad        int
	}{
		{"nothing", "", map[string]string{}, 0},
		{"plain", "A=1\nexport B = two words # not this\n# C=3\n\nD=\nE=a#b", map[string]string{"A": "1", "B": "two words", "D": "", "E": "a#b"}, 0},
		{"quotes", "A=\"x # y\" # z\nB='a\\n\"'\nC=\"a\\n\\\"b\\\\\"", map[string]string{"A": "x # y", "B": "a\\n\"", "C": "a\n\"b\\"}, 0},
		{"windows, with a mark", "\ufeffA=1\r\nB=2\r\n", map[string]string{"A": "1", "B": "2"}, 0},
		{"the last one counts", "A=1\nA=2", map[string]string{"A": "2"}, 0},
		{"nothing is filled in", "A=${HOME}", map[string]string{"A": "${HOME}"}, 0},
		{"no equals sign", "A=1\nsecret", nil, 2},
		{"no name", "=secret", nil, 1},
		{"a name that is none", "two words=1", nil, 1},
		{"not closed", "A=\"secret", nil, 1},
		{"something behind", "A='x' y", nil, 1},
		{"very many", strings.Repeat("A=1\n", 3) + many(), nil, 1003},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, bad := dotenv(tt.text)
			if d := cmp.Diff(tt.want, got); d != "" || bad != tt.bad {
				t.Errorf("bad line %d, want %d; (-want +got):\n%s", bad, tt.bad, d)
			}
		})
	}
}

func many() string {
	var b strings.Builder
	for i := range maxVariables + 5 {
		b.WriteString("B" + strings.Repeat("x", i) + "=1\n")
	}
	return b.String()
}

func TestEnvFile(t *testing.T) {
	files := tree{
		"/home/u/.cursor/mcp.json": `{"mcpServers": {"a": {"command": "a", "env": {"MINE": "1"}, "envFile": "${userHome}/.env"}, "gone": {"command": "g", "envFile": "/no"},
			"bad": {"command": "b", "envFile": "/bad"}, "odd": {"command": "o", "envFile": 7}}}`,
		"/home/u/.config/Code/User/mcp.json": `{"servers": {"code": {"command": "c", "envFile": "sub/.env"}}}`,
		"/home/u/.env":                       "MINE=theirs\nTHEIRS=2\n", "/home/u/.config/Code/User/sub/.env": "X=1", "/bad": "secret",
	}
	c := Scan(files.fs(), linux())
	check(t, c, []string{"a: a MINE=1 THEIRS=2", "code: c X=1"}, []string{
		"bad: its envFile /bad can't be understood at line 1", "gone: its envFile is /no, and of that: it does not exist", "odd: its envFile is a number, not a string"})
}

// TestEnvFileOfARepository: a repository has no say in the variables of the servers that its user has set up for all projects.
func TestEnvFileOfARepository(t *testing.T) {
	const entry = `{"command": "c", "envFile": ".env"}`
	for _, tt := range []struct{ file, key string }{
		{"/home/u/.cursor/mcp.json", "mcpServers"}, {"/home/u/.config/Code/User/mcp.json", "servers"},
		{"/etc/mine.json", "mcpServers"}, {"/home/u/.config/mcp/mcp.json", "mcpServers"},
	} {
		t.Run(tt.file, func(t *testing.T) {
			files := tree{tt.file: `{"` + tt.key + `": {"s": ` + entry + `}}`, path.Dir(tt.file) + "/.env": "MINE=1",
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

func FuzzDotenv(f *testing.F) {
	for _, seed := range []string{"A=1", "export B='x' # y", "C=\"\\", "=", "\ufeff#", "D=\"a\\nb\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		variables, bad := dotenv(text)
		if (variables == nil) != (bad > 0) || len(variables) > maxVariables {
			t.Errorf("%d variables, bad line %d", len(variables), bad)
		}
		for name := range variables {
			if badVariable(name) && !strings.Contains(name, "\x00") {
				t.Errorf("variable %q", name)
			}
		}
	})
}
