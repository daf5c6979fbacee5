//go:build unix

package main

import "syscall"

// openFiles is how many descriptors a process in a container may have: a rootless engine can't give
// more than its user has (setrlimit(2)), and then starts no container at all.
func openFiles() int64 {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || l.Max > noFile {
		return noFile
	}
	return int64(l.Max)
}
