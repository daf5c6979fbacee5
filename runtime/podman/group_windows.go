package podman

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a console's interrupt, which is for us, from what a command leaves running.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
