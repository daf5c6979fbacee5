package discovery

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// counted is a file system that counts how often each file has been opened.
type counted struct {
	fs.FS
	opened map[string]int
}

func (c counted) Open(name string) (fs.File, error) {
	c.opened[name]++
	return c.FS.Open(name)
}

// Stat opens nothing.
func (c counted) Stat(name string) (fs.FileInfo, error) { return fs.Stat(c.FS, name) }

// TestValuesAreReadOnce: a file that entries take values from is read once for all of them, and not
// at all for a server that is refused whatever its values are.
func TestValuesAreReadOnce(t *testing.T) {
	var entries []string
	for i := range 20 {
		entries = append(entries, fmt.Sprintf(`"s%d": {"type": "local", "command": ["x%d", `+
			`"{file:/value}", "{file:/value}"]}`, i, i))
	}
	file := `{"mcp": {` + strings.Join(entries, ", ") + `}}`
	for _, tt := range []struct {
		name, path    string
		servers, read int
	}{
		{"the user's", "/home/u/.config/opencode/opencode.json", 20, 1},
		{"a project's", "/w/p/opencode.json", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := counted{tree{tt.path: file, "/value": "v"}.fs(), map[string]int{}}
			c := Scan(fsys, linux())
			if len(c.Servers) != tt.servers || len(c.Servers)+len(c.Problems) != 20 ||
				fsys.opened["value"] != tt.read {
				t.Errorf("%d servers, %d problems, read %d times", len(c.Servers), len(c.Problems),
					fsys.opened["value"])
			}
			for _, p := range c.Problems {
				if p.State != Unapproved {
					t.Errorf("problem %v", p)
				}
			}
		})
	}
}

// TestLargeDirectory: the files of one directory are bounded together too.
func TestLargeDirectory(t *testing.T) {
	files := tree{}
	for i := range 10 {
		files[fmt.Sprintf("/home/u/.continue/mcpServers/%02d.yaml", i)] = "# " +
			strings.Repeat("x", maxSmall-100) + fmt.Sprintf("\nmcpServers: [{name: s%d, command: x%d}]", i, i)
	}
	c := Scan(files.fs(), linux())
	if len(c.Servers) != (2<<20)/maxSmall || len(c.Problems) != 1 ||
		c.Problems[0].Reason != "it has more than 1000 files, or more than 2048 KiB in them; the last by name "+
			"were left out" {
		t.Errorf("%d servers, problems %v", len(c.Servers), c.Problems)
	}
}

// TestLargeFiles: the user's own JSON may hold much else; what a project brings along may not.
func TestLargeFiles(t *testing.T) {
	large := `{"mcpServers": {"s": {"command": "x"}}, "history": "` + strings.Repeat("x", maxSmall) + `"}`
	const refused = ": it is larger than 256 KiB, which is the limit"
	for _, tt := range []struct {
		path, dir string
		servers   []string
		problems  []string
	}{
		{"/home/u/.claude.json", "/w/p", []string{"s: x"}, nil},
		{"/home/u/.claude.json", "/home/u", []string{"s: x"}, nil},
		{"/home/u/.claude.json", "/home", []string{"s: x"}, nil},
		{"/home/u/p/.mcp.json", "/home/u/p", nil, []string{"/home/u/p/.mcp.json" + refused}},
		{"/w/p/.cursor/mcp.json", "/w/p", nil, []string{"/w/p/.cursor/mcp.json" + refused}},
	} {
		t.Run(tt.path+" in "+tt.dir, func(t *testing.T) {
			env := linux()
			env.Dir = tt.dir
			check(t, Scan(tree{tt.path: large}.fs(), env), tt.servers, tt.problems)
		})
	}
}
