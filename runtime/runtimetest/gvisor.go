package runtimetest

import (
	"maps"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// differs are properties that can't be seen with an OCI runtime, or that it hasn't got, and what
// there is instead.
func differs(f runtime.Facts) map[string]string {
	if f.OCIRuntime != "runsc" {
		return map[string]string{}
	}
	return maps.Clone(gVisor)
}

// gVisor answers a container's system calls by a kernel of its own, in a process that the machine
// confines. These are its differences, seen with the runsc of Debian 12 and 13.
var gVisor = map[string]string{
	"no capabilities":   "gVisor shows four of the five sets, and they are empty",
	"no new privileges": "gVisor doesn't show it; that setuid programs are powerless is tested",
	"seccomp filter": "gVisor doesn't apply the engine's profile to the container, but one of its own" +
		" to itself; the guest's filter is in force in it",
	"namespaces":              "gVisor has no control group namespace: the control groups in it are its own",
	"control group namespace": "a container in gVisor sees its own id, and no name of the machine's",
	"writable places": "gVisor doesn't show nosuid and nodev; that neither setuid programs nor devices" +
		" work is tested",
	"devices":               "/dev/fuse and /dev/net are gVisor's own, and end in it",
	"devices can't be made": "device files can be made in gVisor, and open nothing of the machine's",
	"no process is safer from want of memory than the first": "oom_score_adj is gVisor's own, and means " +
		"nothing" +
		" to the machine",
	"no swap beyond the memory limit": "a container in gVisor doesn't see the limit;" +
		" that it holds is tested by using the memory up",
	"each container has a user namespace of its own": "its namespaces are gVisor's own, and" +
		" RLIMIT_NPROC counts each container's processes alone",
	"processes are limited": "the engine can't count gVisor's processes; the" +
		" guest sets RLIMIT_NPROC, which gVisor keeps for each container by itself",
	"calls": "the call ends in gVisor, which makes few of its" +
		" own; the engine's profile isn't applied, and the guest's filter is",
}
