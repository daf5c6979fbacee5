package startup

import "syscall"

// Hide keeps other processes of the user from reading this one's environment, memory and
// descriptors in /proc, and from tracing it: upstream servers run as the user, and some of that may
// be other servers' secrets. There are then no core dumps either. A program that it executes can be
// looked at again.
func Hide() { _, _, _ = syscall.Syscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0) }

// OpenFiles returns how many descriptors, of most, a process in a container may have. A rootless
// engine can't give more than its user has (setrlimit(2)); it would start no container at all.
func OpenFiles(most int64) int64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || l.Max > uint64(most) {
		return most
	}
	return int64(l.Max)
}
