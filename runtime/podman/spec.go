//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/containers/podman/v5/pkg/specgen"
	"github.com/opencontainers/runtime-spec/specs-go"
	"go.podman.io/image/v5/manifest"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// hostname is the same in every container, so that none learns anything by it.
const hostname = "sandbox"

// generate writes a Spec in podman's words and adds the lock-down, which no Spec can change. The
// items are those of the design's security brief; runtimetest.LockDown sees each from inside.
//
// What podman's own settings (containers.conf) would decide where nothing is said, is said: a
// setting must not open the wall.
func generate(s runtime.Spec, c *connection, oci string) *specgen.SpecGenerator {
	g := specgen.NewSpecGenerator(s.Image, false)

	g.Entrypoint, g.Command = s.Command[:1], s.Command[1:]
	g.Env = map[string]string{}
	for _, kv := range s.Env {
		k, v, _ := strings.Cut(kv, "=")
		g.Env[k] = v
	}
	g.UnsetEnvAll, g.EnvHost, g.HTTPProxy = new(true), new(false), new(false)
	g.Stdin, g.Terminal = new(true), new(false)
	g.Labels = s.Owner.Labels()
	g.LogConfiguration = &specgen.LogConfig{Driver: "none"}
	g.Hostname = hostname
	g.Systemd = "false"
	g.SdNotifyMode = "ignore"
	// An image's own HEALTHCHECK would be run beside the code, by the engine, again and again.
	g.HealthConfig = &manifest.Schema2HealthConfig{Test: []string{"NONE"}}

	// The last resorts: the engine's own clock, and removal by the engine when we are no longer there
	// to do it.
	g.Timeout = uint(math.Ceil(s.MaxAge.Seconds()))
	g.Remove = new(true)
	g.RestartPolicy = "no"

	// Files: a read-only root, sized tmpfs, nothing of the image's volumes, nothing of the host's
	// names.
	g.ReadOnlyFilesystem, g.ReadWriteTmpfs = new(true), new(false)
	g.ImageVolumeMode = "ignore"
	g.Volatile = new(true)
	for _, t := range s.Tmpfs {
		g.Mounts = append(g.Mounts, tmpfs(t))
	}
	// Podman 5 would mount its own read-only with the root.
	g.Mounts = append(g.Mounts, tmpfs(runtime.Tmpfs{Path: "/dev/shm", Size: s.Limits.Shm}))
	g.Mask = []string{"/sys/dev/block"} // podman 4 masks it by itself
	g.UseImageHosts, g.UseImageResolvConf = new(true), new(true)
	g.Passwd = new(false)

	// Namespaces, privileges.
	g.NetNS = specgen.Namespace{NSMode: specgen.NoNetwork}
	for _, ns := range []*specgen.Namespace{&g.PidNS, &g.UtsNS, &g.CgroupNS} {
		ns.NSMode = specgen.Private
	}
	g.IpcNS.NSMode = specgen.None // private, and without a /dev/shm of podman's
	c.users.apply(g, c.facts.Rootless)
	g.CgroupsMode = "enabled"
	g.User = s.User
	g.CapDrop = []string{"ALL"}
	g.NoNewPrivileges = new(true)
	g.Privileged = new(false)
	g.Init = new(false) // the guest is its own init

	// The engine's own defaults of AppArmor and SELinux stay as they are: named, they could only be
	// weakened.
	g.SeccompProfilePath = c.profile
	g.OCIRuntime = oci

	limit(g, s.Limits, c.facts)
	return g
}

// tmpfs returns a mount that never copies up what the image has at the place: a directory of the
// code's own starts empty.
func tmpfs(t runtime.Tmpfs) specs.Mount {
	return specs.Mount{
		Destination: t.Path,
		Type:        "tmpfs",
		Source:      "tmpfs",
		Options: []string{"rw", "nosuid", "nodev", "noexec", "notmpcopyup", fmt.Sprintf("size=%d", t.Size),
			"mode=1777"},
	}
}

// limit sets what the engine enforces. What it doesn't is left out, since podman then refuses or
// warns: the guest keeps those limits by itself.
func limit(g *specgen.SpecGenerator, l runtime.Limits, f runtime.Facts) {
	// Podman writes the names in upper case and RLIMIT_ before them by itself.
	g.Rlimits = []specs.POSIXRlimit{
		{Type: "nofile", Soft: uint64(l.NoFile), Hard: uint64(l.NoFile)},
		{Type: "core"},
	}
	switch {
	case f.OwnUsers && !f.Enforces.PIDs:
		g.Rlimits = append(g.Rlimits, specs.POSIXRlimit{Type: "nproc", Soft: uint64(l.PIDs), Hard: uint64(l.PIDs)})
	case !f.Rootless:
		// Podman as root would raise it to a number that a root without CAP_SYS_RESOURCE may not set. The
		// cgroup's limit is the one that holds.
		g.Rlimits = append(g.Rlimits, specs.POSIXRlimit{Type: "nproc", Soft: 4096, Hard: 4096})
	}
	r := &specs.LinuxResources{}
	if f.Enforces.Memory {
		// On cgroup v2 podman turns memory+swap into swap by itself; equal numbers mean no swap.
		r.Memory = &specs.LinuxMemory{Limit: new(l.Memory), Swap: new(l.Memory)}
	}
	if f.Enforces.PIDs {
		r.Pids = &specs.LinuxPids{Limit: l.PIDs}
	}
	if f.Enforces.CPUs && l.CPUs > 0 {
		const period = 100 * time.Millisecond
		r.CPU = &specs.LinuxCPU{
			Period: new(uint64(period.Microseconds())),
			Quota:  new(int64(l.CPUs * float64(period.Microseconds()))),
		}
	}
	g.ResourceLimits = r
}
