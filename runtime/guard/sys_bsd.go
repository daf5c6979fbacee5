//go:build unix && !linux

package guard

import (
	"errors"
	"os/exec"
	"syscall"
)

// pinned: the leader is reaped as soon as it ends, and its number may then be given to somebody else.
const pinned = false

// lead makes cmd the leader of a new group.
func lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// awaitExit waits for the child's end and reaps it: there is no waiting without reaping in the standard library here. The
// number stays taken for as long as the group has another process.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

// identity is not known here; a group is then told only by its number.
func identity(int) (start uint64, session int) { return 0, 0 }

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

// populated says whether a group has a process that can be signalled; one with nothing but zombies answers EPERM.
func populated(pgid int) bool {
	err := syscall.Kill(-pgid, 0)
	return !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.EPERM)
}
