//go:build unix

package streamable

import "syscall"

// maxConns returns how many connections there may be: half as many as the process may open files.
func maxConns() int {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil {
		return mostConns
	}
	return int(min(uint64(files.Cur)/2, mostConns)) //nolint:unconvert // it is signed on FreeBSD
}
