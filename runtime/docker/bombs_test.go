package docker

import (
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox/sandboxtest"
)

// TestBombs uses up all that is limited; the guest keeps what the engine can't.
func TestBombs(t *testing.T) { sandboxtest.Bombs(t, newDriver(t, Config{}), imageRef) }
