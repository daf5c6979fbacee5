package sandbox

import (
	"cmp"
	"math"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Sizes of the container's writable directories, in bytes. They are counted as memory where the
// engine enforces a memory limit.
const (
	workspaceSize = 128 << 20
	tmpSize       = 64 << 20
	ipcSize       = 16 << 20
)

// ageSlack is how much longer than the longest run a container may live by the engine's own clock,
// which is the last resort after a killed bridge and a guest that doesn't hear its stdin end.
const ageSlack = 30 * time.Second

// asSlack is address space beyond the memory limit that the limit by rlimit leaves for thread
// stacks and allocator arenas, which reserve far more than they use.
const asSlack = 64 << 20

// environment returns all that a guest is given, the same for every run of every user.
func environment() []string {
	return []string{
		"HOME=/workspace",
		"LANG=C.UTF-8",
		"PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin",
		"TMPDIR=/tmp",
		// glibc reserves 64 MiB of address space per arena, and makes eight arenas a core: too much
		// to be counted by RLIMIT_AS.
		"MALLOC_ARENA_MAX=2",
		"PYTHONDONTWRITEBYTECODE=1",
		"MPLBACKEND=Agg",
		"MPLCONFIGDIR=/tmp",
	}
}

// spec returns the policy: what every container gets.
func (s *Sandbox) spec(image string) runtime.Spec {
	return runtime.Spec{
		Image:   image,
		Command: entrypoint.Boot(nil),
		Env:     environment(),
		User:    s.cfg.User,
		Limits:  s.cfg.Limits,
		Tmpfs:   writable(),
		Owner:   s.cfg.Owner,
		MaxAge:  maxAge(s.cfg),
	}
}

// writable returns the directories that code may write to, beside /dev/shm.
func writable() []runtime.Tmpfs {
	return []runtime.Tmpfs{
		{Path: "/ipc", Size: ipcSize},
		{Path: "/tmp", Size: tmpSize},
		{Path: "/workspace", Size: workspaceSize},
	}
}

// maxAge returns an age with room for the start, for what the code waits for off its clock, and for
// the time that a guest may wait for its run.
func maxAge(cfg Config) time.Duration {
	age := cfg.StartTimeout + cfg.patience() + cfg.MaxTimeout + ageSlack
	if cfg.Standby > 0 {
		age += warmAge
	}
	return age
}

func (c Config) patience() time.Duration { return cmp.Or(c.Patience, c.StartTimeout) }

// options returns the bounds of a run that the guest keeps by itself.
func (s *Sandbox) options(r Request, f runtime.Facts) entrypoint.Options {
	limits := s.limits(r.Environment)
	o := bounds(f, limits)
	o.TimeoutMs = r.Timeout.Milliseconds()
	o.MemoryLimitBytes = limits.Memory
	o.MaxLogLines = math.MaxInt32 // output is cut by bytes, by the host
	o.MaxLogChars = int(s.cfg.OutputLimit)
	o.MaxArtifactBytes = s.cfg.ArtifactLimit
	o.Discovered, o.Sandboxes = r.Discovered, r.Sandboxes
	return o
}

// bounds returns the part of options that is the same for all runs: the constants, and whatever the
// engine doesn't enforce.
func bounds(f runtime.Facts, limits runtime.Limits) entrypoint.Options {
	o := entrypoint.Options{Rlimits: map[string]int64{"core": 0, "nofile": limits.NoFile}}
	if !f.Enforces.Memory {
		o.Rlimits["as"] = limits.Memory + asSlack
		o.Watch.MemoryBytes = limits.Memory
	}
	switch pidsEnforcedBy(f) {
	case ByEngine:
	case ByRlimit:
		o.Rlimits["nproc"] = limits.PIDs
	default:
		// Not RLIMIT_NPROC: the kernel counts it over all containers whose users map to the same
		// uid outside.
		o.Watch.Processes = limits.PIDs
	}
	if !f.Enforces.CPUs {
		o.Cores = wholeCores(limits.CPUs)
	}
	return o
}

// wholeCores returns a share of the processors as cores to be bound to; 0 for all of them.
func wholeCores(cpus float64) int { return int(math.Ceil(cpus)) }
