//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containers/podman/v5/pkg/bindings/containers"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// image is what the tests run: made from the distribution's packages where no registry is
// reachable.
const image = "localhost/mcp-bridge/python:latest"

// newDriver is the user's own rootless podman, or what test/engines/with-engine started. Without
// MCP_BRIDGE_TEST_RUNTIME=podman a machine that has none skips these tests; with it they fail.
func newDriver(t *testing.T) *Driver {
	t.Helper()
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "podman" {
		t.Skip("MCP_BRIDGE_TEST_RUNTIME is not podman: no engine to test against")
	}
	d := New(Config{
		RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"), Endpoint: os.Getenv("CONTAINER_HOST"),
		AllowRootful: os.Getenv("MCP_BRIDGE_ALLOW_ROOTFUL") == "true",
	})
	t.Cleanup(func() { d.Close() })
	_, has, err := d.FindImage(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	if !has {
		t.Fatalf("there is no image %s: run mcp-bridge image build", image)
	}
	return d
}

func target(d *Driver) func(*testing.T) runtimetest.Target {
	owner := runtime.Self()
	return func(t *testing.T) runtimetest.Target {
		return runtimetest.Target{Driver: d, Image: image, Owner: owner,
			Count: func() int { return count(t, d, owner) }}
	}
}

func count(t *testing.T, d *Driver, owner runtime.Owner) int {
	t.Helper()
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	filter := map[string][]string{"label": {runtime.LabelInstance + "=" + owner.Instance}}
	list, err := containers.List(c.with(t.Context()),
		new(containers.ListOptions).WithAll(true).WithFilters(filter))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestBehaviour(t *testing.T) { runtimetest.Behaviour(t, target(newDriver(t))) }

func TestLayers(t *testing.T) { runtimetest.Layers(t, target(newDriver(t))) }

func TestLockDown(t *testing.T) { runtimetest.LockDown(t, target(newDriver(t))) }

// TestServiceIsChild: where no socket listens, the service is ours, and nothing of it is left after
// Close.
func TestServiceIsChild(t *testing.T) {
	d := newDriver(t)
	f, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.service.child == nil {
		t.Skipf("a podman service listens already at %s", f.Endpoint)
	}
	dir, process := d.service.child.place, d.service.child.process
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the socket's directory is %v, %v; want mode 0700", fi, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if process.State() == nil {
		t.Error("the service's process isn't reaped")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", filepath.Base(dir), err)
	}
	if _, err := d.Facts(t.Context()); err == nil {
		t.Error("a closed driver answers")
	}
}

func TestUnavailable(t *testing.T) {
	none := filepath.Join(t.TempDir(), "podman.sock")
	tests := []struct {
		name string
		cfg  Config
	}{
		{"nothing listens at the endpoint", Config{Endpoint: "unix://" + none}},
		{"an endpoint that is no URL", Config{Endpoint: "::"}},
		{"an unknown scheme", Config{Endpoint: "gopher://x"}},
		{"no program", Config{Binary: "no-such-podman"}},
		{"a program that isn't podman", Config{Binary: "false", RuntimeDir: t.TempDir()}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := New(tt.cfg)
			defer d.Close()
			_, err := d.Facts(t.Context())
			var un *runtime.UnavailableError
			if !errors.As(err, &un) || un.Hint() == "" || un.Error() == "" {
				t.Fatalf("Facts: got %v, want an *UnavailableError with a hint", err)
			}
			t.Logf("%v; %s", un, un.Hint())
		})
	}
}

// TestTempDir: a service that could write no temporary file is not started. Podman 4.3 would start,
// and fail with a nil pointer.
func TestTempDir(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	d := New(Config{Binary: "true", RuntimeDir: t.TempDir(), AllowRootful: true})
	defer d.Close()
	_, err := d.service.start(t.Context())
	var un *runtime.UnavailableError
	if !errors.As(err, &un) || !strings.Contains(un.Error(), "TMPDIR") ||
		!strings.Contains(un.Hint(), "set TMPDIR") || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
