//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox/sandboxtest"
)

// TestBombs uses up all that is limited; the guest keeps what the engine can't.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute; make test-all runs it")
	}
	sandboxtest.Bombs(t, newDriver(t), image)
}
