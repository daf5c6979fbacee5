//go:build unix

package image

import (
	"os/exec"
	"syscall"
)

// inGroup starts cmd as the leader of a process group of its own, which is asked to end when the
// command's context does: mmdebstrap then takes its mounts and its scratch directory away.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// killGroup ends what is left of the group, which is nothing when all went well.
func killGroup(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) }
