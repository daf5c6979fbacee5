//go:build unix

package guard

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

func rootDir() string { return "/" }

// detach puts the watchdog into a session of its own: no terminal, no group that anyone else would
// signal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// terminate asks every process of a group to end, the stopped ones included.
func terminate(pgid int) error {
	err := syscall.Kill(-pgid, syscall.SIGTERM)
	_ = syscall.Kill(-pgid, syscall.SIGCONT)
	return err
}

func kill(pgid int) error { return syscall.Kill(-pgid, syscall.SIGKILL) }

// closeOnExec marks every open descriptor but the standard three. Those that Go opened are marked
// already; others come from the process that started this one.
func closeOnExec() {
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
