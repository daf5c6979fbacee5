//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"os"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox/sandboxtest"
)

// TestRollback: no bad call loses the variables of a sandbox. With MCP_BRIDGE_TEST_LONG=1 each is
// made a hundred times, and 95 of the calls that follow must be answered within 50 ms; those after
// a bad call that has made the machine itself slow have a second. It needs a quiet machine then.
func TestRollback(t *testing.T) {
	if os.Getenv("MCP_BRIDGE_TEST_LONG") == "" {
		sandboxtest.Rollback(t, newDriver(t), image, 3, nil)
		return
	}
	sandboxtest.Rollback(t, newDriver(t), image, 100, func(bad string) time.Duration {
		if bad == "memory" || bad == "fork bomb" {
			return time.Second
		}
		return 50 * time.Millisecond
	})
}
