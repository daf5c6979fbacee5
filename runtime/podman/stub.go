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

type (
	connection struct{}
	machine    struct{}
	attempt    struct{}
	profile    struct{}
)

func quiet() {}

// hasRuntime keeps our own service from being started.
func (d *Driver) hasRuntime(context.Context) error { return d.untagged() }

func (d *Driver) untagged() error {
	return d.unavailable("", errors.New("this mcp-bridge was built without it, by a plain go build"), "build it with: make build")
}

// Facts says how to build a program that has podman.
func (d *Driver) Facts(context.Context) (runtime.Facts, error) { return runtime.Facts{}, d.untagged() }

// FindImage says how to build a program that has podman.
func (d *Driver) FindImage(context.Context, string) (runtime.Image, bool, error) {
	return runtime.Image{}, false, d.untagged()
}

// PullImage says how to build a program that has podman.
func (d *Driver) PullImage(context.Context, string, runtime.Progress) (runtime.Image, error) {
	return runtime.Image{}, d.untagged()
}

// ImportImage says how to build a program that has podman.
func (d *Driver) ImportImage(context.Context, string, io.Reader) error { return d.untagged() }

// Run says how to build a program that has podman.
func (d *Driver) Run(context.Context, runtime.Spec, runtime.Stdio) (runtime.Exit, error) {
	return runtime.Exit{}, d.untagged()
}

// Orphans says how to build a program that has podman.
func (d *Driver) Orphans(context.Context, runtime.Owner) ([]runtime.Orphan, error) {
	return nil, d.untagged()
}

// Remove says how to build a program that has podman.
func (d *Driver) Remove(context.Context, ...string) error { return d.untagged() }

// Start says how to build a program that has podman.
func (d *Driver) Start(context.Context, runtime.Progress) error { return d.untagged() }

// Close has nothing to end.
func (d *Driver) Close() error {
	d.end()
	return nil
}
