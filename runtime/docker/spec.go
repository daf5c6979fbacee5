package docker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// hostname is the same in every container, so that none learns anything by it.
const hostname = "sandbox"

// template is what an image would bring into a container by itself, and what every container takes
// back.
type template struct {
	id      string
	env     []string // names
	volumes []string // paths
}

// generate writes a Spec in docker's words and adds the lock-down, which no Spec can change. The
// items are those of the design's security brief; runtimetest.LockDown sees each from inside.
func (c *connection) generate(s runtime.Spec, t template) (*container.Config, *container.HostConfig) {
	h := c.d.cfg.Hardening
	config := &container.Config{
		Image:      t.id,
		Entrypoint: s.Command[:1],
		Cmd:        s.Command[1:],
		Env:        environment(s.Env, t.env),
		User:       s.User,
		WorkingDir: "/",
		Hostname:   hostname,
		Labels:     s.Owner.Labels(),

		OpenStdin: true, StdinOnce: true, // when the client is gone the input ends, and the guest with it
		AttachStdin: true, AttachStdout: true, AttachStderr: true,
		// an engine that is shut down needn't wait for a politeness that hostile code doesn't have
		StopSignal:  "SIGKILL",
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		// Docker then doesn't run a process of its own in each container's start to move a namespace with
		// nothing in it. The namespace is the OCI runtime's, empty as well.
		NetworkDisabled: true,
	}
	host := &container.HostConfig{
		LogConfig:     container.LogConfig{Type: "none"},
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		AutoRemove:    true, // by the engine, when we are no longer there to do it

		// Files: a read-only root, sized tmpfs, nothing of the image's volumes.
		ReadonlyRootfs: true,
		Tmpfs:          tmpfs(s.Tmpfs, t.volumes),
		ShmSize:        s.Limits.Shm,
		MaskedPaths:    c.masked(),
		ReadonlyPaths:  readonlyPaths,

		// Namespaces, privileges.
		NetworkMode:  "none",
		IpcMode:      container.IPCModePrivate,
		CgroupnsMode: container.CgroupnsModePrivate,
		CapDrop:      []string{"ALL"},
		SecurityOpt:  []string{"no-new-privileges"},
		Init:         new(false), // the guest is its own init
		Runtime:      h.OCIRuntime,
		Resources:    c.resources(s.Limits),
	}
	if h.Seccomp != nil && c.facts.Seccomp == h.Seccomp.Name {
		host.SecurityOpt = append(host.SecurityOpt, "seccomp="+compact(h.Seccomp.JSON))
	}
	return config, host
}

// readonlyPaths are docker's own, which it doesn't take given any, and the device nodes. Rootless,
// those are the host's nodes, and code could set their times. Reading and writing a device works on
// a read-only mount.
var readonlyPaths = []string{
	"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
	"/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero",
}

// masked returns the places of /proc and /sys that tell of the machine. Given any, docker takes
// none of its own, so these are its own, those of its later versions, and the machine's disks.
func (c *connection) masked() []string {
	paths := []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/sched_debug",
		"/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/dev/block", "/sys/devices/virtual/powercap",
		"/sys/firmware",
	}
	for i := range c.cpus {
		paths = append(paths, fmt.Sprintf("/sys/devices/system/cpu/cpu%d/thermal_throttle", i))
	}
	return paths
}

// environment returns env and nothing else: a name without a value takes away what docker or the
// image would set.
func environment(env, image []string) []string {
	all := slices.Clone(env)
	for _, name := range append([]string{"HOSTNAME"}, image...) {
		set := func(kv string) bool { k, _, _ := strings.Cut(kv, "="); return k == name }
		if name != "PATH" && !slices.ContainsFunc(all, set) {
			all = append(all, name)
		}
	}
	return all
}

// tmpfs returns the spec's directories, each empty at first, and over each volume of the image one
// that takes nothing: docker would make a volume of its own there, on the disk, without a bound.
func tmpfs(dirs []runtime.Tmpfs, volumes []string) map[string]string {
	const safe = "nosuid,nodev,noexec"
	m := map[string]string{}
	for _, v := range volumes {
		m[v] = "ro," + safe + ",size=4096,mode=0555"
	}
	for _, d := range dirs {
		m[d.Path] = fmt.Sprintf("rw,%s,size=%d,mode=1777", safe, d.Size)
	}
	return m
}

// resources sets what the engine enforces. What it doesn't is left out: the guest keeps those
// limits by itself.
func (c *connection) resources(l runtime.Limits) container.Resources {
	r := container.Resources{Ulimits: []*container.Ulimit{
		{Name: "nofile", Soft: l.NoFile, Hard: l.NoFile},
		{Name: "core"},
	}}
	if c.facts.Enforces.Memory {
		r.Memory, r.MemorySwap = l.Memory, l.Memory // memory and swap together: equal numbers mean no swap
	}
	if c.facts.Enforces.PIDs {
		r.PidsLimit = new(l.PIDs)
	}
	if c.facts.Enforces.CPUs && l.CPUs > 0 {
		cpus := l.CPUs
		if c.cpus > 0 { // docker refuses what is more than there is
			cpus = min(cpus, float64(c.cpus))
		}
		r.NanoCPUs = int64(cpus * 1e9)
	}
	return r
}

// compact returns JSON in one line, as docker's command line sends it. What isn't JSON is the
// engine's to refuse.
func compact(b []byte) string {
	var v json.RawMessage
	if err := json.Unmarshal(b, &v); err != nil {
		return string(b)
	}
	short, err := json.Marshal(v)
	if err != nil {
		return string(b)
	}
	return string(short)
}
