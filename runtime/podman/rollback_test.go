//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"os"
	"strconv"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox/sandboxtest"
)

// TestRollback: no bad call loses the variables of a sandbox.
// MCP_BRIDGE_TEST_ROUNDS says how often each is made.
func TestRollback(t *testing.T) {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("MCP_BRIDGE_TEST_ROUNDS")); err == nil {
		rounds = n
	}
	sandboxtest.Rollback(t, newDriver(t), image, rounds)
}
