//go:build !(remote && containers_image_openpgp && exclude_graphdriver_btrfs)

package podman

import (
	"context"
	"errors"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// The build tags are missing, without which podman's bindings need the headers of gpgme and btrfs
// to be compiled. The rest of the program works; this says what to do when a container is asked
// for.

type connection struct {
	engine.Client
	facts runtime.Facts
}

func quiet() {}

// untagged is why there is no podman.
var untagged = errors.New("this mcp-bridge was built without podman, by a go install or go build " +
	"without tags")

func (d *Driver) dial(context.Context, endpoint) (*connection, error) { return nil, untagged }

func (d *Driver) explain(_ *connection, err error, _ bool) error { return err }
