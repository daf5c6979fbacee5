package podman

import "syscall"

// ownGroup puts a child into a process group of its own and has the kernel end it with the thread that started it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
