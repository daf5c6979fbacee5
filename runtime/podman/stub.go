//go:build !(remote && containers_image_openpgp && exclude_graphdriver_btrfs)

package podman

import (
	"context"
	"errors"
	"io"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// The build tags are missing, without which podman's bindings need the headers of gpgme and btrfs to be compiled. The rest
// of the program works; this says what to do when a container is asked for.

type connection struct{}

func quiet() {}

func (d *Driver) untagged() error {
	return d.unavailable("", errors.New("this mcp-bridge was built without it, by a plain go build"), "build it with: make build")
}

// Facts says how to build a program that has podman.
func (d *Driver) Facts(context.Context) (runtime.Facts, error) { return runtime.Facts{}, d.untagged() }

// HasImage says how to build a program that has podman.
func (d *Driver) HasImage(context.Context, string) (bool, error) { return false, d.untagged() }

// EnsureImage says how to build a program that has podman.
func (d *Driver) EnsureImage(context.Context, string, runtime.Progress) error { return d.untagged() }

// ImportImage says how to build a program that has podman.
func (d *Driver) ImportImage(context.Context, string, io.Reader) error { return d.untagged() }

// Run says how to build a program that has podman.
func (d *Driver) Run(context.Context, runtime.Spec, runtime.Stdio) (runtime.Exit, error) {
	return runtime.Exit{}, d.untagged()
}

// Reap says how to build a program that has podman.
func (d *Driver) Reap(context.Context, runtime.Owner) (int, error) { return 0, d.untagged() }
