//go:build unix

package catalog

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// owned is a file of another owner.
type owned struct {
	fs.FileInfo
	uid int
}

func (o owned) Sys() any { return &syscall.Stat_t{Uid: uint32(o.uid)} }

// TestFilesOfAnother: the owner of a file can write it, though no other user may at the moment.
func TestFilesOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.json")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	about, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := private(about); err != nil {
		t.Errorf("our own: %v", err)
	}
	if private(owned{about, os.Geteuid() + 1}) == nil {
		t.Error("another user's file is taken for ours")
	}
	if err := private(owned{about, os.Geteuid()}); err != nil {
		t.Errorf("our own: %v", err)
	}
}

// TestDirectoryOfAnother: nothing is written into another user's directory, which is left as it is.
func TestDirectoryOfAnother(t *testing.T) {
	dir := "/" // root's
	if os.Geteuid() == 0 {
		dir = t.TempDir()
		if err := os.Chown(dir, 12345, -1); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := OpenStore(dir).Save("k", List{}); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("got %v", err)
	}
	after, err := os.Stat(dir)
	if err != nil || after.Mode() != before.Mode() {
		t.Errorf("its mode was %v and is %v, %v", before.Mode(), after.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*"+suffix)); err != nil || len(left) > 0 {
		t.Errorf("%v is left there, %v", left, err)
	}
}
