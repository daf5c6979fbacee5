//go:build unix && !linux

package runtime

import "syscall"

// gone reports whether there certainly is no such process.
func gone(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }
