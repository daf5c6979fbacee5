//go:build unix

package podman

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a terminal's interrupt, which is for us, from what a command leaves running.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
