package bridge

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestFilesAreWritten: the result's text names where the files are, or why they can't be written;
// the outcome is the same.
func TestFilesAreWritten(t *testing.T) {
	inTheWay := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	one := []sandbox.Artifact{{Name: "a.csv", Mime: "text/csv", Data: []byte("1,2")}}
	var many []sandbox.Artifact
	for _, name := range strings.Split("abcdefghijkl", "") {
		many = append(many, sandbox.Artifact{Name: name, Mime: "text/plain", Data: []byte(name)})
	}
	for _, tc := range []struct {
		name, dir string
		files     []sandbox.Artifact
		want      string
	}{
		{"one", dir, one, `^done\n\[written to ` + dir + `/[0-9a-f]{12}/a\.csv\]$`},
		{"many", dir, many, `^done\n\[written to ` + dir +
			`/[0-9a-f]{12}: a, b, c, d, e, f, g, h, i, j and 2 more\]$`},
		{"none", dir, nil, `^done$`},
		{"nowhere", filepath.Join(inTheWay, "d"), one, `^done\n\[files were not written to .*/d ` +
			`\(MCP_BRIDGE_ARTIFACTS\): the directory .* not a directory\]$`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store, err := files.Open(tc.dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			b := build(t, func(c *Config) {
				c.Files = store
				c.Runner = fakeRunner{run: func(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
					r := printed("done")
					r.Artifacts = tc.files
					return r, nil
				}}
			})
			res := connect(t, b).call(`{"code":"x"}`)
			if got := res.Content[0].Text; !regexp.MustCompile(tc.want).MatchString(got) || res.IsError {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if len(res.Content) != 1+len(tc.files) {
				t.Errorf("%d contents of %d files", len(res.Content), len(tc.files))
			}
			if tc.name == "one" {
				path := strings.TrimSuffix(strings.TrimPrefix(res.Content[0].Text, "done\n[written to "), "]")
				if data, err := os.ReadFile(path); err != nil || string(data) != "1,2" {
					t.Errorf("%s: %q, %v", path, data, err)
				}
			}
		})
	}
}
