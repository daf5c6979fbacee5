package files

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run is the name of the n-th run.
func run(n int) string { return fmt.Sprintf("%012x", n) }

func file(name string, size int) []sandbox.Artifact {
	return []sandbox.Artifact{{Name: name, Data: bytes.Repeat([]byte("x"), size)}}
}

// TestKeep: files are the user's alone, not executable, and told by their absolute paths.
func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "dir")
	s := open(t, dir)
	paths, err := s.Keep(t.Context(), run(1), []sandbox.Artifact{{Name: "a.sh", Data: []byte("#!/bin/sh")},
		{Name: "sub/ü.csv", Data: []byte("1")}})
	if err != nil || len(paths) != 2 {
		t.Fatalf("%v, %v", paths, err)
	}
	for name, path := range paths {
		if want := filepath.Join(dir, run(1), filepath.FromSlash(name)); path != want || !filepath.IsAbs(path) {
			t.Errorf("%s is at %s, want %s", name, path, want)
		}
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		about, err := e.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = fs.ModeDir | 0o700
		}
		if about.Mode() != want {
			t.Errorf("%s is %v, want %v", path, about.Mode(), want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := s.Keep(t.Context(), run(1), file("b", 1)); err == nil {
		t.Error("a run is written twice")
	}
}

// TestKeepThroughNoLink: a link in the place of a run's directory leads nowhere.
func TestKeepThroughNoLink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, run(1))); err != nil {
		t.Fatal(err)
	}
	if paths, err := open(t, dir).Keep(t.Context(), run(1), file("a", 1)); err == nil || len(paths) > 0 {
		t.Errorf("written to %v, %v", paths, err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("there are %v, %v", left, err)
	}
}

// TestKeepNowhere: where nothing can be written, or by everybody, the error says so.
func TestKeepNowhere(t *testing.T) {
	base := t.TempDir()
	plain, open1 := filepath.Join(base, "file"), filepath.Join(base, "open")
	sticky := filepath.Join(base, "sticky")
	readOnly := filepath.Join(base, "readonly")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, mode := range map[string]fs.FileMode{open1: 0o777, sticky: 0o777 | fs.ModeSticky, readOnly: 0o500} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{filepath.Join(plain, "d"): "can't be made",
		open1: "run: chmod o-w", sticky: "so no file is put there; name a directory below it",
		readOnly: "permission denied"} {
		if os.Getuid() == 0 && dir == readOnly {
			continue // root may
		}
		if paths, err := open(t, dir).Keep(t.Context(), run(1), file("a", 1)); err == nil ||
			!strings.Contains(err.Error(), want) || len(paths) > 0 {
			t.Errorf("%s: %v, %v, want %q", dir, paths, err, want)
		}
	}
}

// TestOldestRunsGo: and neither the one just written nor what isn't a bridge's.
func TestOldestRunsGo(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.max = 120_000
	for _, theirs := range []string{run(99), "photos"} { // without the mark of a bridge
		if err := os.Mkdir(filepath.Join(dir, theirs), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, theirs, "mine"), make([]byte, 200_000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		if i == 3 {
			s = open(t, dir) // another bridge
			s.max = 120_000
		}
		if _, err := s.Keep(t.Context(), run(i), file("a", 30_000)); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(time.Duration(i-10) * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, run(i)), when, when); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{false, false, true, true, true} {
		if _, err := os.Stat(filepath.Join(dir, run(i), "a")); (err == nil) != want {
			t.Errorf("run %d is there: %v, want %v", i, err == nil, want)
		}
	}
	if _, err := s.Keep(t.Context(), run(6), file("a", 150_000)); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 4 || left[1].Name() != run(6) {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestSeveralBridges keep and remove at the same time.
func TestSeveralBridges(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for b := range 4 {
		s := open(t, dir)
		s.max = 50_000
		wg.Go(func() {
			for i := range 20 {
				if _, err := s.Keep(t.Context(), run(100*b+i), file("sub/a", 10_000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := open(t, dir).Keep(t.Context(), run(1000), file("a", 1)); err != nil {
		t.Error(err)
	}
}

// TestKeepWithoutTheLock: another bridge that holds the lock delays a result no longer than the
// call lasts. The files are kept, and nothing is removed.
func TestKeepWithoutTheLock(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.max = 1
	if _, err := s.Keep(t.Context(), run(1), file("a", 1)); err != nil {
		t.Fatal(err)
	}
	release, err := filelock.Acquire(t.Context(), filepath.Join(dir, lockName))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if paths, err := s.Keep(ctx, run(2), file("a", 1)); err != nil || len(paths) != 1 {
		t.Errorf("got %v, %v", paths, err)
	}
	for i := 1; i <= 2; i++ {
		if _, err := os.Stat(filepath.Join(dir, run(i), "a")); err != nil {
			t.Error(err)
		}
	}
}

// TestKeepWhereNothingCanBeLocked: the files are kept, and the log says once that nothing is
// removed.
func TestKeepWhereNothingCanBeLocked(t *testing.T) {
	dir := t.TempDir()
	var said bytes.Buffer
	s, err := Open(dir, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s.max = 1
	if err := os.Mkdir(filepath.Join(dir, lockName), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 2; i++ {
		if paths, err := s.Keep(t.Context(), run(i), file("a", 1)); err != nil || len(paths) != 1 {
			t.Errorf("got %v, %v", paths, err)
		}
	}
	if n := strings.Count(said.String(), "old files of runs are not removed"); n != 1 {
		t.Errorf("it was said %d times: %s", n, said.String())
	}
}
