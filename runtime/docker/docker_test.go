package docker

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// imageRef is what the tests run: made from the distribution's packages where no registry is reachable.
const imageRef = "localhost/mcp-bridge/python:latest"

// newDriver is the docker at DOCKER_HOST, rootful or not. Without MCP_BRIDGE_TEST_RUNTIME=docker a machine that has none skips
// these tests; with it they fail.
func newDriver(t testing.TB, cfg Config) *Driver {
	t.Helper()
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "docker" {
		t.Skip("MCP_BRIDGE_TEST_RUNTIME is not docker: no engine to test against")
	}
	cfg.RuntimeDir, cfg.AllowRootful = os.Getenv("XDG_RUNTIME_DIR"), true
	d := New(cfg)
	t.Cleanup(func() { d.Close() })
	_, has, err := d.FindImage(t.Context(), imageRef)
	if err != nil {
		t.Fatal(err)
	}
	if !has {
		t.Fatalf("there is no image %s: run mcp-bridge image build", imageRef)
	}
	return d
}

func target(d *Driver) func(*testing.T) runtimetest.Target {
	owner := runtime.Self()
	return func(t *testing.T) runtimetest.Target {
		return runtimetest.Target{Driver: d, Image: imageRef, Owner: owner, Count: func() int { return count(t, d, owner) }}
	}
}

func count(t *testing.T, d *Driver, owner runtime.Owner) int {
	t.Helper()
	c, err := d.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	about := filters.NewArgs(filters.Arg("label", runtime.LabelInstance+"="+owner.Instance))
	list, err := c.cli.ContainerList(t.Context(), container.ListOptions{All: true, Filters: about})
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestBehaviour(t *testing.T) { runtimetest.Behaviour(t, target(newDriver(t, Config{}))) }

func TestLockDown(t *testing.T) { runtimetest.LockDown(t, target(newDriver(t, Config{}))) }

func TestUnavailable(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"} {
		t.Setenv(name, "")
	}
	t.Setenv("DOCKER_CONFIG", dir)
	tests := []struct {
		name     string
		endpoint string
	}{
		{"nobody listens at the endpoint", "unix://" + filepath.Join(dir, "docker.sock")},
		{"an endpoint that is no URL", "::"},
		{"an unknown scheme", "gopher://x"},
		{"a relative socket", "unix://docker.sock"},
		{"no host", "tcp://"},
		{"a password for ssh", "ssh://me:secret@host"},
		{"nobody listens at the port", "tcp://127.0.0.1:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Config{Endpoint: tt.endpoint})
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
