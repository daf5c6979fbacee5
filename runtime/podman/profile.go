package podman

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// profile is the file that hands the seccomp profile to the engine.
type profile struct {
	mu     sync.Mutex
	dir    string // empty until it is written
	forget func()
}

// write writes the profile, where this user and the engine can read it, unless it is there already.
func (f *profile) write(p *program, s *runtime.SeccompProfile) (path string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const name = "seccomp.json"
	if f.dir != "" {
		path = filepath.Join(f.dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		f.removeLocked() // somebody has cleaned up
	}
	if f.dir, f.forget, err = p.privateDir(); err != nil {
		return "", err
	}
	path = filepath.Join(f.dir, name)
	if err := os.WriteFile(path, s.JSON, 0o600); err != nil {
		f.removeLocked()
		return "", err
	}
	return path, nil
}

// remove removes the file, if there is one.
func (f *profile) remove() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir != "" {
		f.removeLocked()
	}
}

func (f *profile) removeLocked() {
	_ = os.RemoveAll(f.dir) // the guard's, or the system's own cleaning's, if it can't be
	f.forget()
	f.dir = ""
}
