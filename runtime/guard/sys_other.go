//go:build !linux

package guard

import (
	"os/exec"
	"syscall"
)

// pinned: the leader is reaped as soon as it ends, and its number may then be given to another
// process.
const pinned = false

// awaitExit waits for the child's end and reaps it: the standard library can't wait without reaping
// here. The number stays taken while the group has another process.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

// identity returns nothing here: a group is told only by its number.
func identity(int) (start uint64, session int) { return 0, 0 }

// marked finds nothing: the environment of other processes can't be read here.
func marked([]string) []entry { return nil }

func (*sweep) signal(int) int { return 0 }

// nameGroup logs the group by its number: its processes can't be listed here.
func (s *sweep) nameGroup(e entry) {
	if s.log != nil {
		s.log.Info("ending a process group of a killed bridge", "group", e.PGID)
	}
}

func present(e entry) bool { return populated(e.PGID) }

// Processes yields nothing: other processes can't be told apart here.
func Processes(func(Seen) bool) {}

// Args are none.
func (o Seen) Args() []string { return nil }

// Program is not known.
func (o Seen) Program() string { return "" }

// Ours is never certain.
func (o Seen) Ours() bool { return false }

// Alive says no: there isn't one.
func (o Seen) Alive() bool { return false }

// Signal finds nothing to signal.
func (o Seen) Signal(syscall.Signal) error { return errNotThere }
