// Package filelock lets several processes change a file: one at a time, and the whole file at once.
// It knows nothing of what is in the file.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// pause is how long Acquire waits before it looks again whether the lock is free.
const pause = 5 * time.Millisecond

// Acquire takes the lock of the file path, which holds nothing else, and waits for it until ctx
// ends. A free lock is taken even if ctx has ended. The lock excludes other callers in this process
// too. It is free again after release, or when the process ends; the file stays. Who holds the lock
// may remove the file: others lock the one that is at path then.
func Acquire(ctx context.Context, path string) (release func(), err error) {
	for {
		f := flock.New(path)
		free, err := f.TryLock()
		if err == nil && !free {
			if free, err = f.TryLockContext(ctx, pause); !free && ctx.Err() != nil {
				err = fmt.Errorf("another process holds it: %w", context.Cause(ctx))
			}
		}
		there := false
		if err == nil {
			there, err = isAt(f, path)
		}
		switch {
		case err != nil:
			_ = f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		case there:
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close()
	}
}

// Within is Acquire that waits for so long at most.
func Within(ctx context.Context, wait time.Duration, path string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return Acquire(ctx, path)
}

// isAt reports whether the file that is locked is still the one at path.
func isAt(f *flock.Flock, path string) (bool, error) {
	locked, err := f.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return os.SameFile(locked, now), err
}
