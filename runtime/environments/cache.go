package environments

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

// cacheDir is the directory for what is downloaded, for builds and locks under way, and for when
// each environment was last used.
type cacheDir struct {
	path string                            // empty for none
	file func(path string) (forget func()) // told of what must not outlive us; may be nil
}

// Files of builds and locks under way.
const spools, lockDirs = "layer-*.tar", "lock-*"

// turn blocks until no other process builds or locks, and removes what killed ones have left. It
// calls waits, which may be nil, if one does.
func (c cacheDir) turn(ctx context.Context, waits func()) (release func(), err error) {
	if c.path == "" {
		return nil, &text.HintError{Err: errors.New("there is no directory for downloads"),
			Next: "set HOME or XDG_CACHE_HOME"}
	}
	if err := os.MkdirAll(c.path, 0o700); err != nil {
		return nil, c.full(err)
	}
	lock := filepath.Join(c.path, "build.lock")
	if waits != nil {
		ended, end := context.WithCancel(ctx)
		end()
		if release, err = filelock.Acquire(ended, lock); errors.Is(err, context.Canceled) {
			waits()
		}
	}
	if release == nil {
		release, err = filelock.Acquire(ctx, lock)
	}
	if err != nil {
		return nil, c.full(err)
	}
	for _, pattern := range []string{spools, lockDirs} {
		left, _ := filepath.Glob(filepath.Join(c.path, pattern)) // its pattern is right
		for _, path := range left {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	if err != nil {
		release()
	}
	return release, err
}

// spool creates the temporary file of the layer.
func (c cacheDir) spool() (f *os.File, remove func(), err error) {
	if f, err = os.CreateTemp(c.path, spools); err != nil {
		return nil, nil, err
	}
	forget := c.guard(f.Name())
	return f, func() { _ = errors.Join(f.Close(), os.Remove(f.Name())); forget() }, nil
}

// guard has a file or directory removed when this process is killed.
func (c cacheDir) guard(path string) (forget func()) {
	if c.file == nil {
		return func() {}
	}
	return c.file(path)
}

// full adds the next step to an error if a disk is full, this machine's or the engine's.
func (c cacheDir) full(err error) error {
	var known interface{ Hint() string }
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &text.HintError{Err: err, Next: "free some space in " + c.path + ", and try again"}
	case strings.Contains(err.Error(), "no space left on device"):
		return &text.HintError{Err: err,
			Next: "free some space on the engine's disk (podman system prune, docker system" +
				" prune; mcp-bridge env remove NAME), and try again"}
	}
	return err
}

// mark returns the file whose time is that of an environment's last use.
func (c cacheDir) mark(name string) string { return filepath.Join(c.path, "used-"+name) }

// use sets that time.
func (c cacheDir) use(name string) {
	if c.path == "" {
		return
	}
	now := time.Now()
	if os.Chtimes(c.mark(name), now, now) != nil {
		_ = os.WriteFile(c.mark(name), nil, 0o600) // it matters little
	}
}

// lastUse returns when an environment was last built or used; at is the earliest answer.
func (c cacheDir) lastUse(name string, at time.Time) time.Time {
	info, err := os.Stat(c.mark(name))
	if err == nil && info.ModTime().After(at) {
		return info.ModTime()
	}
	return at
}

func (c cacheDir) forget(name string) {
	if c.path != "" {
		_ = os.Remove(c.mark(name))
	}
}
