package main

import (
	"golang.org/x/sys/unix"
)

// hide keeps other processes of the user from reading this one's environment, memory and
// descriptors in /proc, and from tracing it: upstream servers run as the user, and some of that may
// be other servers' secrets. There are then no core dumps either. A program that it executes can be
// looked at again.
func hide() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// openFiles returns how many descriptors a process in a container may have. A rootless engine can't
// give more than its user has (setrlimit(2)); it would start no container at all.
func openFiles() int64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Max > noFile {
		return noFile
	}
	return int64(l.Max)
}
