package podman

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// endpoint is a place where podman's API may be had.
type endpoint struct {
	url      string
	identity string // ssh key file
	machine  bool   // a VM that podman itself runs: the VM is the wall, rootful or not
	own      bool   // our own child
}

// endpoints are the places to try, in order; those on this machine only if their socket is there.
func (d *Driver) endpoints(ctx context.Context) []endpoint {
	if d.cfg.Endpoint != "" {
		return []endpoint{{url: d.cfg.Endpoint}}
	}
	var found []endpoint
	sockets := []string{"/run/podman/podman.sock"}
	if d.cfg.RuntimeDir != "" {
		sockets = append([]string{filepath.Join(d.cfg.RuntimeDir, "podman", "podman.sock")}, sockets...)
	}
	for _, s := range sockets {
		if fi, err := os.Stat(s); err == nil && fi.Mode()&os.ModeSocket != 0 {
			found = append(found, endpoint{url: "unix://" + s})
		}
	}
	return append(found, d.listed(ctx)...)
}

// listed are podman's own connections, the default one first. Where podman can't say, there are none.
func (d *Driver) listed(ctx context.Context) []endpoint {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.cfg.Binary, "system", "connection", "list", "--format", "json")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var list []struct {
		URI       string
		Identity  string
		Default   bool
		IsMachine bool
	}
	if json.Unmarshal(out, &list) != nil {
		return nil
	}
	var first, rest []endpoint
	for _, c := range list {
		e := endpoint{url: c.URI, identity: c.Identity, machine: c.IsMachine}
		if c.Default {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	}
	return append(first, rest...)
}
