package podman

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/trust"
)

// endpoint is a place where podman's API may be had.
type endpoint struct {
	name     string // podman's own for it; may be empty
	url      string
	identity string // ssh key file
	machine  bool   // a VM that podman itself runs: the VM is the wall, rootful or not
	own      bool   // our own child
	refused  error  // why it is not to be used, though it is there; nil for nothing
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
	return append(d.sockets(), d.listed(ctx)...)
}

// sockets are the usual ones that are there. Nobody has named them, so whose they are is looked at.
func (d *Driver) sockets() []endpoint {
	var found []endpoint
	add := func(path string, refused error) {
		if fi, err := os.Stat(path); err != nil || fi.Mode()&os.ModeSocket == 0 {
			return
		}
		if refused == nil {
			refused = trust.System().Path(path)
		}
		if refused != nil {
			d.log.Warn("socket not used", "path", path, "err", refused)
		}
		found = append(found, endpoint{url: "unix://" + path, refused: refused})
	}
	if d.named != "" {
		add(filepath.Join(d.named, "podman", "podman.sock"), d.ignored)
	}
	add("/run/podman/podman.sock", nil)
	return found
}

// refusals are the reasons against the sockets that were there and not used.
func refusals(all []endpoint) []string {
	var why []string
	for _, e := range all {
		if e.refused != nil {
			why = append(why, "the socket "+strings.TrimPrefix(e.url, "unix://")+" is there and not used: "+e.refused.Error())
		}
	}
	return why
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
	ctx, cancel := context.WithTimeout(ctx, d.asking)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.cfg.Binary, args...)
	cmd.Env = d.environ()
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	return json.Unmarshal(out, answer)
}
