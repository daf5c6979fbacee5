// Package filelock lets several processes change a file: one at a time, and the whole file at once. It
// knows nothing of what is in the file.
package filelock

import (
	"context"
	"fmt"
	"os"
	"time"
)

// pause is how long it waits until it looks again whether the lock is free.
const pause = 5 * time.Millisecond

// Acquire takes the lock that path, a file made for nothing else, stands for, and waits for it until ctx ends. It also excludes
// callers in this process. The lock is free again when release has been called, and when the process ends, however it does; the
// file stays, since removing it would let two others in.
func Acquire(ctx context.Context, path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		free, err := try(f)
		if free {
			return func() { f.Close() }, nil
		}
		if err == nil && ctx.Err() != nil {
			err = fmt.Errorf("another process holds it: %w", context.Cause(ctx))
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		wait(ctx)
	}
}

func wait(ctx context.Context) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
