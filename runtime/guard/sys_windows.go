package guard

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

func rootDir() string { return os.Getenv("SystemDrive") + `\` }

func detach(cmd *exec.Cmd) { lead(cmd) }

// pinned: the leader is reaped as soon as it ends, and its number may then be given to somebody else.
const pinned = false

// lead gives cmd a console process group of its own.
func lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= syscall.CREATE_NEW_PROCESS_GROUP
}

func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

func identity(int) (start uint64, session int) { return 0, 0 }

// terminate ends the process tree hard: console programs have no SIGTERM. The tree is known only while its root lives.
func terminate(pid int) error {
	return exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(pid)).Run()
}

func kill(pid int) error { return terminate(pid) }

// marked finds nothing: the environment of other processes can't be read here.
func marked([]string) []entry { return nil }

func (*sweep) signal(int) int { return 0 }

// nameGroup logs the group by its number: its processes can't be listed here.
func (s *sweep) nameGroup(e entry) {
	if s.log != nil {
		s.log.Info("ending a process group of a killed bridge", "group", e.pgid)
	}
}

func present(e entry) bool { return populated(e.pgid) }

// populated says whether the root of the tree is there; the rest of the tree can't be found without it.
func populated(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}

func closeOnExec() {} // handles aren't inherited unless asked for
