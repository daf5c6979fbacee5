package podman

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// endpoint is a place where podman's API may be had.
type endpoint struct {
	engine.Endpoint
	name     string // podman's own for it; may be empty
	identity string // ssh key file
}

// endpoints returns the places to try, in order; those on this machine only if their socket is
// there.
func (d *Driver) endpoints(ctx context.Context) []endpoint {
	if d.cfg.Endpoint == "" {
		return append(d.sockets(), d.listed(ctx)...)
	}
	named := endpoint{Endpoint: engine.Endpoint{URL: d.cfg.Endpoint}, identity: d.cfg.SSHKey}
	if strings.HasPrefix(named.URL, "ssh:") { // it may be a machine's
		for _, e := range d.listed(ctx) {
			if e.URL == named.URL && e.VM {
				return []endpoint{e}
			}
		}
	}
	return []endpoint{named}
}

// sockets returns the usual ones that are there.
func (d *Driver) sockets() []endpoint {
	var found []endpoint
	add := func(path string, refused error) {
		if p, ok := engine.FindSocket(d.log, path, refused); ok {
			found = append(found, endpoint{Endpoint: p})
		}
	}
	if d.cfg.RuntimeDir != "" {
		add(filepath.Join(d.cfg.RuntimeDir, "podman", "podman.sock"), d.program.ignored)
	}
	add("/run/podman/podman.sock", nil)
	return found
}

// listed returns podman's own connections, the default one first; none where podman can't say.
func (d *Driver) listed(ctx context.Context) []endpoint {
	var list []struct {
		Name      string
		URI       string
		Identity  string
		Default   bool
		IsMachine bool
	}
	if d.program.ask(ctx, &list, "system", "connection", "list", "--format", "json") != nil {
		return nil
	}
	var first, rest []endpoint
	for _, c := range list {
		e := endpoint{
			Endpoint: engine.Endpoint{URL: c.URI, VM: c.IsMachine}, name: c.Name, identity: c.Identity,
		}
		if c.Default {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	}
	return append(first, rest...)
}
