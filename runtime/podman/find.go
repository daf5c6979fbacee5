package podman

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// install makes a program with podman in it, where go is installed. The tags are those of
// scripts/build-tags.
const install = "go install -tags remote,exclude_graphdriver_btrfs,containers_image_openpgp" +
	" github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge@latest"

// look tries our own service where it runs, then the endpoint that the user names. Where none is
// named it tries the sockets that are there, then podman's own connections, then a service of its
// own.
func (d *Driver) look(ctx context.Context) (*connection, error) {
	if untagged != nil {
		return nil, d.Unavailable("", untagged, "type: "+install)
	}
	f := finder{d: d}
	f.places = d.service.running()
	others := d.client || runtimeFlags(d.cfg.Hardening.OCIRuntime) == nil // only our own service has the flags
	switch {
	case d.cfg.Endpoint != "":
		f.places = append(f.places, d.endpoints(ctx)...)
	case others:
		f.places = append(f.places, d.sockets()...)
	}
	if c, err := f.try(ctx, f.places); c != nil || err != nil {
		return c, err
	}
	if d.cfg.Endpoint != "" {
		return nil, cmp.Or(d.machine.dormant(ctx, f.places), f.passed[0])
	}
	if others {
		listed := d.listed(ctx)
		f.places = append(f.places, listed...)
		if c, err := f.try(ctx, listed); c != nil || err != nil {
			return c, err
		}
	}
	c, err := d.serve(ctx)
	if err == nil {
		c.facts.Lacks = append(c.facts.Lacks, engine.Refusals(f.places)...)
		return c, nil
	}
	if m := d.machine.dormant(ctx, f.places); m != nil {
		return nil, m
	}
	return nil, d.none(f.passed, err)
}

// finder is one look for an engine.
type finder struct {
	d      *Driver
	places []endpoint // that were there to be tried
	passed []error    // why those that were tried can't be used
}

// try returns the first of some places that can be used; nil for none. The only error is that the
// time is over.
func (f *finder) try(ctx context.Context, places []endpoint) (*connection, error) {
	for _, e := range places {
		c, err := f.d.try(ctx, e)
		if err == nil {
			c.facts.Lacks = append(c.facts.Lacks, engine.Refusals(f.places)...)
			return c, nil
		}
		f.passed = append(f.passed, err)
		if ctx.Err() != nil {
			err := fmt.Errorf("no engine was found in time: %w", errors.Join(f.passed...))
			return nil, f.d.Unavailable("", err, "run: podman info")
		}
	}
	return nil, nil
}

// try dials an endpoint that nothing speaks against.
func (d *Driver) try(ctx context.Context, e endpoint) (*connection, error) {
	if err := e.MayUse(d.Name()); err != nil {
		return nil, err
	}
	return d.dial(ctx, e)
}

// serve starts a service of our own and connects to it.
func (d *Driver) serve(ctx context.Context) (*connection, error) {
	if d.client {
		return nil, errNoService
	}
	e, err := d.service.start(ctx)
	if err != nil {
		return nil, err
	}
	c, err := d.dial(ctx, e)
	if err != nil {
		d.service.stop()
	}
	return c, err
}

var errNoService = errors.New("on this system podman runs in a virtual machine")

// none returns why there is no engine.
func (d *Driver) none(passed []error, err error) error {
	var ready *runtime.UnavailableError
	if errors.As(err, &ready) && ready.Next != "" && len(passed) == 0 {
		return ready
	}
	next := "run: podman info"
	switch {
	case errors.Is(err, exec.ErrNotFound):
		next = "install podman (Debian: sudo apt install podman; Fedora: sudo dnf install podman;" +
			" macOS: brew install podman && podman machine init && podman machine start)," +
			" then run: mcp-bridge doctor"
	case errors.Is(err, errNoService):
		next = "run: podman machine init && podman machine start"
	case d.program.ignored != nil: // and podman, which was started without it, has found no other
		next = "set XDG_RUNTIME_DIR to a directory of your own that no other user can write to, or unset it;" +
			" then run: mcp-bridge doctor"
	case ready != nil && ready.Next != "":
		next = ready.Next
	}
	var why strings.Builder
	for _, p := range passed {
		why.WriteString(p.Error() + "; ")
	}
	return d.Unavailable("",
		fmt.Errorf("%sno other socket listens; and no service could be started: %w", why.String(), err), next)
}
