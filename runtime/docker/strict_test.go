package docker

import (
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/runtime/seccomp"
)

// newStrict is newDriver with our seccomp profile.
func newStrict(t *testing.T) (engines, strict *Driver) {
	t.Helper()
	engines = newDriver(t, Config{})
	profile, err := seccomp.Load(seccomp.Strict)
	if err != nil {
		t.Fatal(err)
	}
	cfg := engines.cfg
	cfg.Hardening.Seccomp = profile
	strict = New(cfg)
	t.Cleanup(func() { strict.Close() })
	return engines, strict
}

// TestStrict is LockDown once more, with each class of calls that our profile denies.
func TestStrict(t *testing.T) {
	_, strict := newStrict(t)
	runtimetest.LockDown(t, target(strict))
}

// TestPython: Python's own tests don't see our profile.
func TestPython(t *testing.T) {
	engines, strict := newStrict(t)
	runtimetest.Python(t, target(engines)(t), target(strict)(t))
}
