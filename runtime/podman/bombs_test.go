//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox/sandboxtest"
)

// TestBombs uses up all that is limited; the guest keeps what the engine can't.
func TestBombs(t *testing.T) {
	needTime(t)
	sandboxtest.Bombs(t, newDriver(t), image)
}

// needTime skips a test that takes long where only the main job is to be shown: see make test.
func needTime(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long; make test-all runs it")
	}
}
