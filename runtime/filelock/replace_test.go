package filelock

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, want := range []string{"a longer text", "ab", ""} {
		if err := Replace(path, "new-*", []byte(want), nil); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if about, err := os.Stat(path); err != nil || about.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", about, err)
		}
	}
	full := filepath.Join(dir, "dir")
	if err := os.MkdirAll(filepath.Join(full, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(full, "new-*", []byte("x")); err == nil {
		t.Error("a directory was replaced")
	}
	if err := Replace(filepath.Join(dir, "missing", "file"), "new-*", []byte("x")); err == nil {
		t.Error("a file was made in a missing directory")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left are %v, %v", entries, err)
	}
}
