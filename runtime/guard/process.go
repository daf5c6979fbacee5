package guard

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"sync"
	"time"
)

// Groups is where a Process registers its group: a *Guard, or nothing. Its method is called
// concurrently and must not block long.
type Groups interface {
	Group(pgid int) (forget func())
}

// MarkVar is the variable that carries the mark of a child that Launch started with a *Guard. Its
// name has no common prefix with the bridge's own variables, which are checked for misspellings.
const MarkVar = "_MCPBRIDGE_MARK"

// marker is what a *Guard can in addition.
type marker interface {
	Mark(mark string) (forget func())
}

// A Process is a child that leads a process group of its own. The caller must call End,
// also when the child ended by itself: only End ends what the child left behind, and reaps it. The
// methods may be called concurrently.
type Process struct {
	cmd     *exec.Cmd
	tracked bool   // the watchdog also ends what leaves the group
	mark    string // empty for none
	forget  func()
	unmark  func()

	exited chan struct{} // the leader ended
	reap   chan struct{} // the leader may be reaped
	gone   chan struct{} // the leader is reaped

	once sync.Once
	err  error
}

// Launch starts cmd as the leader of a new process group and registers that with groups, which may
// be nil. It sets what it needs in cmd.SysProcAttr, adds MarkVar to cmd.Env, and leaves the rest of
// cmd alone; cmd must not have a context. Standard streams that are not files are copied by cmd's
// own goroutines, which End waits for, so they had better be files.
func Launch(cmd *exec.Cmd, groups Groups) (*Process, error) { return launch(cmd, groups, false) }

// LaunchTracked is Launch for a program of which nothing must survive a killed bridge: until End
// has returned, the watchdog also ends processes that left the group (setsid, setpgid), found by
// the mark in their environment, on Linux. End itself leaves them alone: a server may have opened
// an editor or a browser for the user.
func LaunchTracked(cmd *exec.Cmd, groups Groups) (*Process, error) { return launch(cmd, groups, true) }

func launch(cmd *exec.Cmd, groups Groups, tracked bool) (*Process, error) {
	lead(cmd)
	p := &Process{cmd: cmd, tracked: tracked, unmark: func() {}, exited: make(chan struct{}),
		reap: make(chan struct{}), gone: make(chan struct{})}
	started := make(chan error, 1)
	go p.live(groups, started) // ends when the child is reaped; End waits for that
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// live starts, awaits and reaps the child, all on one thread: the parent-death signal is sent when
// the thread that forked ends, and the Go runtime ends threads at times of its own choosing.
func (p *Process) live(groups Groups, started chan<- error) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if err := p.start(groups); err != nil {
		started <- err
		return
	}
	started <- nil
	awaitExit(p.cmd)
	close(p.exited)
	<-p.reap
	_ = p.cmd.Wait() // what it says is in State
	close(p.gone)
}

// start starts the child and registers its group: by a mark until it has one. The mark of a tracked
// one stays.
func (p *Process) start(groups Groups) error {
	m, ok := groups.(marker)
	if ok || p.tracked {
		p.mark = rand.Text()
		if p.cmd.Env == nil {
			p.cmd.Env = os.Environ()
		}
		p.cmd.Env = append(p.cmd.Env, MarkVar+"="+p.mark)
	}
	if ok {
		p.unmark = m.Mark(p.mark)
	}
	err := p.cmd.Start()
	if err != nil || !p.tracked {
		defer p.unmark()
	}
	if err != nil {
		return err
	}
	p.forget = func() {}
	if groups != nil {
		p.forget = groups.Group(p.cmd.Process.Pid)
	}
	return nil
}

// PID returns the process id of the leader and the id of the group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited returns a channel that is closed once the leader has ended. Others of its group may live
// on.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// State returns how the leader ended. It is nil before End has returned.
func (p *Process) State() *os.ProcessState {
	select {
	case <-p.gone:
		return p.cmd.ProcessState
	default:
		return nil
	}
}

// End ends the whole group: SIGTERM, after the grace SIGKILL, and returns when no process of it is
// left and the leader is reaped. A group that is already empty ends at once. It takes at most grace
// plus five seconds; the error then names a group that not even SIGKILL ended, which stays
// registered. Of several calls the first one's grace counts, and all wait.
//
// Processes that left the group live on, and so they do when the bridge is killed later.
//
// Where there is no SIGTERM (Windows) the process tree is ended hard, at once.
func (p *Process) End(grace time.Duration) error {
	p.once.Do(func() { p.err = p.end(grace) })
	return p.err
}

func (p *Process) end(grace time.Duration) error {
	pgid := p.PID()
	if !p.emptyWithin(0) {
		_ = terminate(pgid)
		p.emptyWithin(grace)
	}
	// Also when it looks empty: a process that was forked while the table of processes was read
	// isn't in it. After this none of them can fork. Only where the number may be somebody
	// else's by now, the look has to do.
	if pinned || !p.emptyWithin(0) {
		_ = kill(pgid)
	}
	if !p.emptyWithin(killWait) {
		close(p.reap) // whenever that may be
		return fmt.Errorf("process group %d is still there %v after SIGKILL", pgid, killWait)
	}
	p.forget()
	close(p.reap)
	<-p.gone
	if p.tracked {
		p.unmark()
	}
	return nil
}

// emptyWithin waits until the leader has ended and no other is left in its group, for at most d.
func (p *Process) emptyWithin(d time.Duration) bool {
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	select {
	case <-p.exited:
	default:
		select {
		case <-p.exited:
		case <-timeout.C:
			return false
		}
	}
	for pause := firstPoll; populated(p.PID()); pause = min(2*pause, lastPoll) {
		select {
		case <-time.After(pause):
		case <-timeout.C:
			return false
		}
	}
	return true
}
