package filelock

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
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

// TestSweep: what a killed process has left goes an hour later, and nothing else does.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"state", "state.1", "state.23", "state.new", "state.4x", "state.", "other.5",
		"state.6"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "state.6" { // it is being written
			continue
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(dir, "state.*")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"other.5", "state", "state.", "state.4x", "state.6", "state.new"}; !slices.Equal(left,
		want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	Sweep(filepath.Join(dir, "missing"), "state.*")
}
