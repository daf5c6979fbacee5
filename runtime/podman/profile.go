package podman

import (
	"os"
	"path/filepath"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// profile is a seccomp profile as a file.
type profile struct {
	dir    string
	path   string
	forget func()
}

// profilePath writes the profile once, where this user and the engine can read it.
func (d *Driver) profilePath(s *runtime.SeccompProfile) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.profile != nil {
		if _, err := os.Stat(d.profile.path); err == nil {
			return d.profile.path, nil
		}
		d.profile.remove() // somebody has cleaned up
		d.profile = nil
	}
	dir, forget, err := d.privateDir()
	if err != nil {
		return "", err
	}
	p := &profile{dir: dir, path: filepath.Join(dir, "seccomp.json"), forget: forget}
	if err := os.WriteFile(p.path, s.JSON, 0o600); err != nil {
		p.remove()
		return "", err
	}
	d.profile = p
	return p.path, nil
}

func (p *profile) remove() {
	if p == nil {
		return
	}
	_ = os.RemoveAll(p.dir) // the guard's, or the system's own cleaning's, if it can't be
	p.forget()
}
