//go:build unix && !linux

package guard

import (
	"errors"
	"os/exec"
	"syscall"
)

// lead makes cmd the leader of a new group.
func lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// populated reports whether a group has a process that can be signalled; one with nothing but
// zombies answers EPERM.
func populated(pgid int) bool {
	err := syscall.Kill(-pgid, 0)
	return !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.EPERM)
}
