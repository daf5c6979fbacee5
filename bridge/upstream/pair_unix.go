//go:build unix

package upstream

import (
	"os"
	"syscall"
)

// pair returns the two ends of what is to be a server's standard input or output. They are sockets,
// because Linux lets any process of the user open a pipe of another one by /proc/PID/fd, and so a
// server could write into another's input, past the policy. Node starts its children with sockets
// too, so servers know them from their hosts.
func pair(bool) (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	_ = syscall.SetNonblock(fds[0], true) // ours alone, so that Close ends a read
	// Neither is shut down in the other direction, as in Node: a server that writes to its input
	// would be killed by SIGPIPE, and asyncio takes the end of what it writes to for a reader that
	// has gone.
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}
