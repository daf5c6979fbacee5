// Package filelock lets several processes change a file: one at a time, and the whole file at once.
// It knows nothing of what is in the file.
package filelock

import (
	"context"
	"fmt"
	"time"

	"github.com/gofrs/flock"
)

// pause is how long Acquire waits before it looks again whether the lock is free.
const pause = 5 * time.Millisecond

// Acquire takes the lock of the file path, which holds nothing else, and waits for it until ctx
// ends. A free lock is taken even if ctx has ended. The lock excludes other callers in this process
// too. It is free again after release, or when the process ends; the file stays.
func Acquire(ctx context.Context, path string) (release func(), err error) {
	f := flock.New(path)
	free, err := f.TryLock()
	if err == nil && !free {
		if free, err = f.TryLockContext(ctx, pause); !free && ctx.Err() != nil {
			err = fmt.Errorf("another process holds it: %w", context.Cause(ctx))
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}
