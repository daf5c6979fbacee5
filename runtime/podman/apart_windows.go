package podman

import (
	"os/exec"
	"syscall"
)

// apart keeps a console's interrupt, which is for us, from what a command leaves running.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
