package podman

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// endpoint is a place where podman's API may be had.
type endpoint struct {
	name     string // podman's own for it; may be empty
	url      string
	identity string // ssh key file
	machine  bool   // a VM that podman itself runs: the VM is the wall, rootful or not
	own      bool   // our own child
}

// endpoints are the places to try, in order; those on this machine only if their socket is there.
func (d *Driver) endpoints(ctx context.Context) []endpoint {
	if d.cfg.Endpoint != "" {
		named := endpoint{url: d.cfg.Endpoint, identity: d.cfg.SSHKey}
		if strings.HasPrefix(named.url, "ssh:") { // it may be a machine's
			for _, e := range d.listed(ctx) {
				if e.url == named.url && e.machine {
					return []endpoint{e}
				}
			}
		}
		return []endpoint{named}
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
	var list []struct {
		Name      string
		URI       string
		Identity  string
		Default   bool
		IsMachine bool
	}
	if d.ask(ctx, &list, "system", "connection", "list", "--format", "json") != nil {
		return nil
	}
	var first, rest []endpoint
	for _, c := range list {
		e := endpoint{name: c.Name, url: c.URI, identity: c.Identity, machine: c.IsMachine}
		if c.Default {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	}
	return append(first, rest...)
}

// ask has podman's own program say something in JSON.
func (d *Driver) ask(ctx context.Context, answer any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.cfg.Binary, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	return json.Unmarshal(out, answer)
}
