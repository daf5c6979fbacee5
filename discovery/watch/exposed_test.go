//go:build unix

package watch

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// TestExposedDirectory: a file that isn't used since others can write to its directory is used once
// the directory is mended, without a restart.
func TestExposedDirectory(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, ".cursor")
	server := []byte(`{"mcpServers": {"s": {"command": "x"}}}`)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "mcp.json"), server, 0o600),
		os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	w := New(discovery.Root(), discovery.Env{Home: home, GOOS: goruntime.GOOS, Owners: trust.System()})
	if c := w.Catalog(); len(c.Servers) != 0 || len(c.Problems) != 1 ||
		c.Problems[0].State != discovery.Exposed {
		t.Errorf("before: %v", c)
	}
	if w.seen.changed() {
		t.Error("it has changed by itself")
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if !w.seen.changed() || !w.scan() || len(w.Catalog().Servers) != 1 {
		t.Errorf("afterwards: %v", w.Catalog())
	}
}
