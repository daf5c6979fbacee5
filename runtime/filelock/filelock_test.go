package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gofrs/flock"
)

func TestAcquire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Acquire(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Acquire(ctx, path); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(),
		"another process holds it") {
		t.Errorf("a second one: %v", err)
	}
	release()
	release, err = Acquire(ctx, path) // a free lock is had whatever ctx is
	if err != nil {
		t.Fatal(err)
	}
	release()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := Acquire(t.Context(), filepath.Join(path, "x")); err == nil {
		t.Error("a lock below a file was had")
	}
}

// TestOneAtATime counts who holds the lock, whose file stays.
func TestOneAtATime(t *testing.T) { oneAtATime(t, func(string) error { return nil }) }

// TestRemovedByItsHolder: who waited for a file that its holder has removed locks the next one.
func TestRemovedByItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f := flock.New(path)
	defer f.Close()
	if ok, err := f.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for _, step := range []struct {
		do   func() error
		want bool
	}{
		{func() error { return nil }, true},
		{func() error { return os.Remove(path) }, false},
		{func() error { return os.WriteFile(path, nil, 0o600) }, false},
	} {
		err := step.do()
		if there, isErr := isAt(f, path); there != step.want || err != nil || isErr != nil {
			t.Errorf("got %v, %v, %v", there, err, isErr)
		}
	}
	oneAtATime(t, os.Remove)
}

func oneAtATime(t *testing.T, leave func(path string) error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lock")
	var holders, all atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				release, err := Acquire(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold it", n)
				}
				all.Add(1)
				holders.Add(-1)
				if err := leave(path); err != nil {
					t.Error(err)
				}
				release()
			}
		})
	}
	wg.Wait()
	if all.Load() != 160 {
		t.Errorf("%d of 160 had it", all.Load())
	}
}
