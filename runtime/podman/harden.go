//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"fmt"

	"github.com/containers/podman/v5/libpod/define"
)

// harden decides what the engine's containers get beyond the lock-down, and writes into the facts
// what they can't have.
func (c *connection) harden(info *define.Info) error {
	if err := c.checkRuntime(); err != nil {
		return err
	}
	if err := c.hardenCalls(info); err != nil {
		return err
	}
	c.users = usersFor(c.facts, info)
	if c.d.shared.Load() {
		c.users = users{why: refusedUsers}
	}
	c.facts.OwnUsers = c.users.size > 0
	if !c.facts.OwnUsers && !c.facts.Enforces.PIDs {
		c.facts.Lacks = append(c.facts.Lacks, "a user namespace for each container: "+c.users.why)
	}
	return nil
}

// checkRuntime refuses an engine whose containers are started by another OCI runtime than was
// asked for. Podman's API takes a name for each container and does nothing with it (tried: 4.3.1,
// 5.4.2), so only our own service, which is told at its start, has a choice.
func (c *connection) checkRuntime() error {
	want := c.d.cfg.Hardening.OCIRuntime
	if want == "" || want == c.facts.OCIRuntime {
		return nil
	}
	return c.d.Unavailable(c.facts.Endpoint,
		fmt.Errorf("its OCI runtime is %s, not %s, and its API gives no choice", c.facts.OCIRuntime, want),
		fmt.Sprintf("write runtime = %q into the [engine] section of containers.conf on the engine's machine, or"+
			" unset MCP_BRIDGE_OCI_RUNTIME", want))
}

// hardenCalls gives the engine our seccomp profile where it can read it: podman's API takes the
// path of a file on the engine's machine, and nothing else.
func (c *connection) hardenCalls(info *define.Info) (err error) {
	f, want := &c.facts, c.d.cfg.Hardening.Seccomp
	unconfined := info.Host.Security.SECCOMPProfilePath == "unconfined"
	switch {
	case !info.Host.Security.SECCOMPEnabled:
		f.Lacks = append(f.Lacks, "a seccomp filter by the engine: this podman has no seccomp")
		return nil
	case want != nil && !f.Remote:
		f.Seccomp = want.Name
		c.profile, err = c.d.profile.write(c.d.program, want)
		return err
	case want != nil:
		f.Lacks = append(f.Lacks, "the seccomp profile "+want.Name+": podman reads it from a file on its own"+
			" machine, which can't see this one's")
	}
	if !unconfined {
		f.Seccomp = "engine"
		return nil
	}
	f.Lacks = append(f.Lacks, "a seccomp filter by the engine: podman's settings turn it off (seccomp_profile"+
		" in containers.conf)")
	return nil
}
