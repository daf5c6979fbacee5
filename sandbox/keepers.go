package sandbox

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// KeptBy is who keeps a limit.
type KeptBy string

// Who can keep a limit, the surest first. Code can get around none of them; but the watch looks only ten times a second, so for a
// moment there can be more than the limit.
const (
	ByEngine   KeptBy = "engine"   // a cgroup, or an option of a mount
	ByBridge   KeptBy = "bridge"   // outside the container
	ByRlimit   KeptBy = "rlimit"   // set by the guest before any code runs, hard
	ByAffinity KeptBy = "affinity" // the guest binds the code to whole cores before any of it runs
	ByWatch    KeptBy = "watch"    // the guest's first process adds up what the others use, and kills them
	ByNone     KeptBy = "none"     // nobody
)

// Keeper says of one limit who keeps it on an engine.
type Keeper struct {
	Limit string // "memory", "pids", "cpus", "nofile", "core", "output", "files handed over", "time", "calls", or the path of a writable directory
	Value string // for a person
	By    KeptBy
	Means string // what that keeper can do and can't, in a sentence; empty where there is nothing to know
}

// Keepers says who keeps each limit of a run on an engine of which f are the facts.
func Keepers(f runtime.Facts, cfg Config) []Keeper {
	l := cfg.Limits
	kept := []Keeper{memoryKeeper(f, l), pidsKeeper(f, l), cpusKeeper(f, l),
		{"nofile", fmt.Sprintf("%d a process", l.NoFile), ByRlimit, ""},
		{"core", "0", ByRlimit, ""},
	}
	places := append(writable(), runtime.Tmpfs{Path: "/dev/shm", Size: l.Shm})
	for _, t := range places {
		means := "it is memory, and counts as such"
		if !f.Enforces.Memory {
			means = "it is memory, and the watch counts it as such"
		}
		kept = append(kept, Keeper{t.Path, mib(t.Size), ByEngine, means})
	}
	return append(kept,
		Keeper{"output", fmt.Sprintf("%d KiB", cfg.OutputLimit>>10), ByBridge, "what is more is counted, and cut out of the middle"},
		Keeper{"files handed over", mib(cfg.ArtifactLimit), ByBridge, ""},
		Keeper{"calls", fmt.Sprintf("%d, %d at a time", cfg.MaxCalls, cfg.Concurrency), ByBridge, ""},
		Keeper{"time", fmt.Sprintf("%v at most", cfg.MaxTimeout), ByBridge,
			fmt.Sprintf("then the container is killed; where the bridge is gone the engine or the guest ends it, within %v", maxAge(cfg).Round(time.Second))},
	)
}

func memoryKeeper(f runtime.Facts, l runtime.Limits) Keeper {
	if f.Enforces.Memory {
		return Keeper{"memory", mib(l.Memory), ByEngine, "all processes and files of a run together, swap counted in"}
	}
	return Keeper{"memory", mib(l.Memory), ByWatch, "the address space of each process is bounded by RLIMIT_AS, and the sum of what all use, files in memory included," +
		" is looked at ten times a second: enough for mistakes, not against code that means harm"}
}

func pidsKeptBy(f runtime.Facts) KeptBy {
	switch {
	case f.OwnKernel:
		return ByRlimit
	case f.Enforces.PIDs:
		return ByEngine
	case f.OwnUsers:
		return ByRlimit
	}
	return ByWatch
}

func pidsKeeper(f runtime.Facts, l runtime.Limits) Keeper {
	k := Keeper{"pids", fmt.Sprintf("%d processes and threads", l.PIDs), pidsKeptBy(f), ""}
	switch {
	case f.OwnKernel:
		k.Means = "each container has a kernel of its own, which counts its processes alone"
	case k.By == ByRlimit:
		k.Means = "each container has a user namespace of its own, so the kernel counts its processes alone"
	case k.By == ByWatch:
		k.Means = "the kernel would count the processes of all containers together (RLIMIT_NPROC), so they are counted ten times a second," +
			" and a run that has more is ended: enough for mistakes, not against code that means harm"
	}
	return k
}

func cpusKeeper(f runtime.Facts, l runtime.Limits) Keeper {
	switch {
	case l.CPUs == 0:
		return Keeper{"cpus", "all cores", ByNone, "MCP_BRIDGE_CPUS sets a limit"}
	case f.Enforces.CPUs:
		return Keeper{"cpus", fmt.Sprintf("%g cores", l.CPUs), ByEngine, ""}
	}
	if f.OwnKernel {
		return Keeper{"cpus", fmt.Sprintf("%g cores", l.CPUs), ByNone, "the engine doesn't limit them, and a kernel of the container's own can't bind to the machine's cores"}
	}
	return Keeper{"cpus", fmt.Sprintf("%d whole cores", wholeCores(l.CPUs)), ByAffinity,
		fmt.Sprintf("%g was asked for; other runs may be bound to the same cores", l.CPUs)}
}

func mib(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

// GuestLimits names the limits that the engine should keep by cgroup and doesn't.
func GuestLimits(f runtime.Facts) []string {
	var missing []string
	for name, kept := range map[string]bool{"memory": f.Enforces.Memory, "pids": f.Enforces.PIDs, "cpus": f.Enforces.CPUs} {
		if !kept {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}
