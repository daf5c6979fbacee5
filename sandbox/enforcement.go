package sandbox

import (
	"fmt"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// EnforcedBy is who keeps a limit.
type EnforcedBy string

// Who can keep a limit, the surest first. Code can get around none of them; but the watch looks
// only ten times a second, so for a moment there can be more than the limit.
const (
	ByEngine   EnforcedBy = "engine"   // a cgroup, or an option of a mount
	ByBridge   EnforcedBy = "bridge"   // outside the container
	ByRlimit   EnforcedBy = "rlimit"   // set by the guest before any code runs, hard
	ByAffinity EnforcedBy = "affinity" // the guest binds the code to whole cores before any of it runs
	ByWatch    EnforcedBy = "watch"    // the guest's first process adds up what the others use, and kills them
	ByNone     EnforcedBy = "none"
)

// Enforcement says of one limit who keeps it on an engine.
type Enforcement struct {
	// "memory", "pids", "cpus", "nofile", "core", "output", "files handed over", "time", "calls",
	// or the path of a writable directory
	Limit string
	Value string // for a person
	By    EnforcedBy
	Means string // what that can do and can't, in a sentence; empty where there is nothing to know
}

// Enforcements returns who keeps each limit of a run on an engine of which f are the facts.
func Enforcements(f runtime.Facts, cfg Config) []Enforcement {
	l := cfg.Limits
	known := []Enforcement{memoryEnforcement(f, l), pidsEnforcement(f, l), cpusEnforcement(f, l),
		{"nofile", fmt.Sprintf("%d a process", l.NoFile), ByRlimit, ""},
		{"core", "0", ByRlimit, ""},
	}
	places := append(writable(), runtime.Tmpfs{Path: "/dev/shm", Size: l.Shm})
	for _, t := range places {
		means := "it is memory, and counts as such"
		if !f.Enforces.Memory {
			means = "it is memory, and the watch counts it as such"
		}
		known = append(known, Enforcement{t.Path, mib(t.Size), ByEngine, means})
	}
	return append(known,
		Enforcement{"output", fmt.Sprintf("%d KiB", cfg.OutputLimit>>10), ByBridge,
			"what is more is counted, and cut out of the middle"},
		Enforcement{"files handed over", mib(cfg.ArtifactLimit), ByBridge, ""},
		Enforcement{"calls", fmt.Sprintf("%d", cfg.MaxCalls), ByBridge, ""},
		Enforcement{"time", fmt.Sprintf("%v at most", cfg.MaxTimeout), ByBridge,
			fmt.Sprintf("then the container is killed; where the bridge is gone the engine or the guest ends it, "+
				"within %v", maxAge(cfg).Round(time.Second))},
	)
}

func memoryEnforcement(f runtime.Facts, l runtime.Limits) Enforcement {
	if f.Enforces.Memory {
		return Enforcement{"memory", mib(l.Memory), ByEngine,
			"all processes and files of a run together, swap counted in"}
	}
	return Enforcement{"memory", mib(l.Memory), ByWatch, "the address space of each process is bounded by " +
		"RLIMIT_AS, and the sum of what all use, files in memory included," +
		" is looked at ten times a second: enough for mistakes, not against code that means harm"}
}

func pidsEnforcedBy(f runtime.Facts) EnforcedBy {
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

func pidsEnforcement(f runtime.Facts, l runtime.Limits) Enforcement {
	k := Enforcement{"pids", fmt.Sprintf("%d processes and threads", l.PIDs), pidsEnforcedBy(f), ""}
	switch {
	case f.OwnKernel:
		k.Means = "each container has a kernel of its own, which counts its processes alone"
	case k.By == ByRlimit:
		k.Means = "each container has a user namespace of its own, so the kernel counts its processes alone"
	case k.By == ByWatch:
		k.Means = "the kernel would count the processes of all containers together (RLIMIT_NPROC), so they are " +
			"counted ten times a second," +
			" and a run that has more is ended: enough for mistakes, not against code that means harm"
	}
	return k
}

func cpusEnforcement(f runtime.Facts, l runtime.Limits) Enforcement {
	switch {
	case l.CPUs == 0:
		return Enforcement{"cpus", "all cores", ByNone, "MCP_BRIDGE_CPUS sets a limit"}
	case f.Enforces.CPUs:
		return Enforcement{"cpus", fmt.Sprintf("%g cores", l.CPUs), ByEngine, ""}
	}
	if f.OwnKernel {
		return Enforcement{"cpus", fmt.Sprintf("%g cores", l.CPUs), ByNone,
			"the engine doesn't limit them, and a kernel of the container's own can't bind to the machine's cores"}
	}
	return Enforcement{"cpus", fmt.Sprintf("%d whole cores", wholeCores(l.CPUs)), ByAffinity,
		fmt.Sprintf("%g was asked for; other runs may be bound to the same cores", l.CPUs)}
}

func mib(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }
