package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func TestWrite(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(t.TempDir(), "new", "dir")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": outside, "out.txt": filepath.Join(outside, "victim")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	paths, err := Write(dir, []sandbox.Artifact{
		{Name: "a.txt", Data: []byte("a")},
		{Name: "sub/b.txt", Data: []byte("b")},
		{Name: "mine.txt", Data: []byte("theirs")},
		{Name: "link/c.txt", Data: []byte("c")},
		{Name: "out.txt", Data: []byte("c")},
		{Name: "../d.txt", Data: []byte("d")}, // the sandbox makes no such names
		{Name: "e.txt"},
	})
	want := map[string]string{"a.txt": filepath.Join(dir, "a.txt"),
		"sub/b.txt": filepath.Join(dir, "sub", "b.txt"), "e.txt": filepath.Join(dir, "e.txt")}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	for _, part := range []string{"mine.txt is in " + dir + " already", "link/c.txt could not",
		"../d.txt could not", "out.txt"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error %v says nothing of %s", err, part)
		}
	}
	for path, text := range map[string]string{"a.txt": "a", "sub/b.txt": "b", "mine.txt": "mine", "e.txt": ""} {
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for _, place := range []string{outside, filepath.Dir(dir)} {
		if left, err := os.ReadDir(place); err != nil || len(left) > 1 || len(left) == 1 &&
			left[0].Name() != "dir" {
			t.Errorf("%s has %v, %v", place, left, err)
		}
	}
}
