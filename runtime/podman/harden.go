//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containers/podman/v5/libpod/define"
	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/specgen"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// harden decides what the engine's containers get beyond the lock-down, and writes into the facts
// what they can't have.
func (d *Driver) harden(ctx context.Context, c *connection, info *define.Info) error {
	if err := d.chooseRuntime(c); err != nil {
		return err
	}
	if err := d.hardenCalls(ctx, c, info); err != nil {
		return err
	}
	d.mu.Lock()
	shared := d.shared
	d.mu.Unlock()
	if shared {
		c.users = users{why: "the engine has refused it"}
	} else {
		c.users = usersFor(c.facts, info)
	}
	c.facts.OwnUsers = c.users.size > 0
	if !c.facts.OwnUsers && !c.facts.Enforces.PIDs {
		c.facts.Lacks = append(c.facts.Lacks, "a user namespace for each container: "+c.users.why)
	}
	return nil
}

// chooseRuntime refuses an engine whose containers are started by another OCI runtime than was
// asked for. Podman's API takes a name for each container and does nothing with it (tried: 4.3.1,
// 5.4.2), so only our own service, which is told at its start, has a choice.
func (d *Driver) chooseRuntime(c *connection) error {
	want := d.cfg.Hardening.OCIRuntime
	if want == "" || want == c.facts.OCIRuntime {
		return nil
	}
	return d.Unavailable(c.facts.Endpoint,
		fmt.Errorf("its OCI runtime is %s, not %s, and its API gives no choice", c.facts.OCIRuntime, want),
		fmt.Sprintf("write runtime = %q into the [engine] section of containers.conf on the engine's machine, or"+
			" unset MCP_BRIDGE_OCI_RUNTIME", want))
}

// hardenCalls gives the engine our seccomp profile where it can read it: podman's API takes the
// path of a file on the engine's machine, and nothing else.
func (d *Driver) hardenCalls(ctx context.Context, c *connection, info *define.Info) error {
	f, s := &c.facts, info.Host.Security
	switch {
	case !s.SECCOMPEnabled:
		f.Lacks = append(f.Lacks, "a seccomp filter by the engine: this podman has no seccomp")
		return nil
	case s.SECCOMPProfilePath == "unconfined":
		f.Seccomp = ""
	default:
		f.Seccomp = "engine"
	}
	want := d.cfg.Hardening.Seccomp
	if want != nil {
		err := errElsewhere
		var path string
		if !f.Remote {
			path, err = d.profilePath(want)
			// Our own service reads what we do: its socket is in a directory beside the profile's.
			if err == nil && (!c.own || !want.Ours) {
				err = readable(ctx, c, path)
			}
		}
		if err == nil {
			c.profile, f.Seccomp = path, want.Name
			return nil
		}
		var un *runtime.UnavailableError
		if errors.As(err, &un) {
			return un // there is no place for it
		}
		if !errors.Is(err, errElsewhere) {
			return d.Unavailable(f.Endpoint, fmt.Errorf("the seccomp profile %s: %w", want.Name, err),
				"check the profile, or use the engine's: MCP_BRIDGE_SECCOMP=engine")
		}
		f.Lacks = append(f.Lacks, "the seccomp profile "+want.Name+": podman reads it from a file on its own"+
			" machine, which can't see this one's")
	}
	if f.Seccomp == "" {
		f.Lacks = append(f.Lacks, "a seccomp filter by the engine: podman's settings turn it off (seccomp_profile"+
			" in containers.conf)")
	}
	return nil
}

var errElsewhere = errors.New("the engine can't read this machine's files")

// readable asks the engine to make a container that can't be made, for it has no root: the profile
// is read before that is found out, so the complaint is about the one or the other. errElsewhere
// says that the engine can't open the file.
func readable(ctx context.Context, c *connection, path string) error {
	g := specgen.NewSpecGenerator("/nonexistent/mcp-bridge", true)
	g.Command = []string{"true"}
	g.SeccompProfilePath = path
	made, err := containers.CreateWithSpec(c.with(ctx), g, nil)
	switch {
	case err == nil: // it can't be; but nothing is left
		_, err := containers.Remove(c.with(ctx), made.ID,
			new(containers.RemoveOptions).WithForce(true).WithIgnore(true))
		return err
	case !strings.Contains(err.Error(), "seccomp"):
		return nil
	case strings.Contains(err.Error(), "no such file"), strings.Contains(err.Error(), "permission denied"):
		return errElsewhere
	}
	return errors.New(runtime.OneLine(err.Error()))
}
