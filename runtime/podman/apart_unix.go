//go:build unix

package podman

import (
	"os/exec"
	"syscall"
)

// apart keeps a terminal's interrupt, which is for us, from what a command leaves running.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
