package guard

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

func rootDir() string { return os.Getenv("SystemDrive") + `\` }

func detach(cmd *exec.Cmd) { lead(cmd) }

// lead gives cmd a console process group of its own.
func lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= syscall.CREATE_NEW_PROCESS_GROUP
}

// terminate ends the process tree hard: console programs have no SIGTERM. The tree is known only
// while its root lives.
func terminate(pid int) error {
	return exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(pid)).Run()
}

func kill(pid int) error { return terminate(pid) }

// populated reports whether the root of the tree is there; the rest of the tree can't be found
// without it.
func populated(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}

func closeOnExec() {} // handles aren't inherited unless asked for
