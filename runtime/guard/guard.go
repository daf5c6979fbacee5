// Package guard sees to it that nothing which the bridge started outlives it, not even when the
// bridge is ended by SIGKILL.
//
// Guard is the bridge's side: it starts a watchdog, a second process of the same binary, and tells
// it through a pipe which process groups and files are the bridge's. Watch is the watchdog's body:
// when the pipe ends, and with it the bridge, it ends the groups and removes the files. Process is
// a child that leads a process group of its own and is ended as a group.
//
// A registered group is sent SIGTERM when the bridge is gone and SIGKILL two seconds later. A
// process that left its group (setsid, setpgid) is ended too if it descends from a child of
// LaunchTracked that Process.End hasn't ended, on Linux 5.3 and later: it is found by a random mark
// in its environment, unless it has wiped that. Process.End ends the group only.
//
// The watchdog has a session of its own and ignores SIGTERM, SIGINT and SIGHUP, so a signal to the
// client's process group or terminal doesn't end it before its work is done. It holds no descriptor
// but the pipe and the null device. Where it is killed together with the bridge, children of
// Process get SIGTERM by the parent-death signal, on Linux; what ignores that, or was started by a
// child, is left.
//
// The pipe keeps a registration however soon the bridge dies. Between the fork of a child and its
// registration, the watchdog knows the mark that the child gets in its environment, and a child
// that has not come to exec gets the parent-death signal. That is bound to the thread that forked,
// so Process keeps that thread until the child is gone. Both are Linux only.
//
// The kernel doesn't reuse a number while a process, a zombie or a group has it. Process reaps its
// leader last, after the group is empty and forgotten, so a registered number belongs to the
// registered group while the bridge lives. Later the watchdog compares start time and session with
// those at registration (Linux), and leaves alone a group that isn't the registered one.
package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	writeWait = time.Second     // a watchdog that hasn't read for this long is replaced
	closeWait = 3 * time.Second // a watchdog that hasn't ended for this long after Close is killed
	// a watchdog that died younger than this is not restarted before the next registration
	steadyAfter = time.Second
)

// Config is how the watchdog is started.
type Config struct {
	Argv []string     // the command, which must end up in Watch(os.Stdin); required
	Env  []string     // its whole environment; it keeps no more than it is given
	Log  *slog.Logger // one line for each watchdog that was lost or could not be started; nil means silence
}

// A Guard keeps one watchdog running and informed. It is made by New; its methods may be called
// concurrently.
type Guard struct {
	cfg Config

	mu      sync.Mutex
	next    int
	entries map[int]entry // by id
	dog     *dog          // nil while none runs
	closed  bool
}

// dog is one watchdog process.
type dog struct {
	in    *os.File
	cmd   *exec.Cmd
	since time.Time
	gone  chan struct{} // closed once the process is reaped
}

// New makes a Guard whose watchdog is started by Begin, or by the first registration. It marks
// every open descriptor of this process close-on-exec, so that neither the watchdog nor any other
// child holds what the bridge's own parent left open.
func New(cfg Config) (*Guard, error) {
	if len(cfg.Argv) == 0 {
		return nil, errors.New("starting the watchdog: no command")
	}
	closeOnExec()
	return &Guard{cfg: cfg, entries: map[int]entry{}}, nil
}

// Begin starts the watchdog, if none runs, and returns once its process is there: what is begun
// after that, it ends. It may be called as often as one likes. A watchdog that dies is started
// again, at once or with the next registration, and told everything again.
func (g *Guard) Begin() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dog != nil || g.closed {
		return nil
	}
	return g.start()
}

// Group registers a process group. Its leader must have been started and not yet been reaped. The
// group must be forgotten when it is empty, and before its leader is reaped; Process does both.
// Forget may be called more than once.
func (g *Guard) Group(pgid int) (forget func()) {
	if pgid <= 1 {
		return func() {} // 0 and 1 would mean ourselves and everyone
	}
	start, session := identity(pgid)
	return g.register(entry{PGID: pgid, Start: start, Session: session})
}

// File registers a file or a directory, which is removed with what is in it, after all groups have
// ended. The path must be absolute; other paths are not registered, and logged.
func (g *Guard) File(path string) (forget func()) { return g.path(entry{Path: []byte(path)}) }

// Keep registers what the file at path is to hold when the bridge is gone: the watchdog replaces
// it, after all groups have ended. It starts no watchdog: one that is started later is told. The
// path must be absolute, as with File.
func (g *Guard) Keep(path string, text []byte) (forget func()) {
	return g.path(entry{Path: []byte(path), Keep: true, Text: text})
}

func (g *Guard) path(e entry) (forget func()) {
	if path := string(e.Path); !removable(path) {
		g.log("the watchdog takes only absolute paths", errors.New(strconv.Quote(path)))
		return func() {}
	}
	return g.register(e)
}

// Mark registers a child that is about to be started with MarkVar=mark in its environment. It is to
// be forgotten once the child's group is registered or, to have the watchdog end what left the
// group too, when nothing of it is left. Launch and LaunchTracked do all of it.
func (g *Guard) Mark(mark string) (forget func()) { return g.register(entry{Mark: mark}) }

// Watched reports whether a watchdog runs, which does what is left when this process ends.
func (g *Guard) Watched() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dog != nil
}

// Close forgets everything that is registered, without ending or removing any of it, and ends the
// watchdog. It takes at most a few seconds. Registrations after Close do nothing.
func (g *Guard) Close() error {
	g.mu.Lock()
	d := g.dog
	g.closed, g.dog, g.entries = true, nil, nil
	g.mu.Unlock()
	if d == nil {
		return nil
	}
	if err := d.write(entry{End: true}); err != nil {
		_ = d.cmd.Process.Kill() // it must not see the pipe's end before it knows that this is a good one
	}
	_ = d.in.Close()
	select {
	case <-d.gone:
	case <-time.After(closeWait):
		_ = d.cmd.Process.Kill()
		<-d.gone
		return fmt.Errorf("the watchdog did not end within %v and was killed", closeWait)
	}
	return nil
}

func (g *Guard) register(e entry) (forget func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return func() {}
	}
	g.next++
	e.ID = g.next
	g.entries[e.ID] = e
	if g.dog != nil || !e.Keep {
		g.tell(e)
	}
	return sync.OnceFunc(func() { g.forget(e.ID) })
}

func (g *Guard) forget(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	delete(g.entries, id)
	if g.dog != nil {
		g.tell(entry{ID: id, Forget: true})
	}
}

// tell writes one entry to the watchdog, and replaces a watchdog that doesn't take it. It is called
// with mu held; a new watchdog is told all entries, so e, if it is a registration, must already be
// one of them.
func (g *Guard) tell(e entry) {
	if g.dog != nil {
		err := g.dog.write(e)
		if err == nil {
			return
		}
		g.log("the watchdog doesn't listen any more; starting another", err)
		g.dog.kill()
		g.dog = nil
	}
	g.restart()
}

// restart starts a watchdog, and logs where that fails. It is called with mu held.
func (g *Guard) restart() {
	if err := g.start(); err != nil {
		g.log("no watchdog: a kill -9 of the bridge would leave processes behind; the next start of a server "+
			"tries again", err)
	}
}

// start starts a watchdog and tells it all entries. It is called with mu held.
func (g *Guard) start() error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting the watchdog: %w", err)
	}
	cmd := exec.Command(g.cfg.Argv[0], g.cfg.Argv[1:]...)
	cmd.Stdin = r
	cmd.Dir = rootDir()                        // keeps no directory busy
	cmd.Env = append([]string{}, g.cfg.Env...) // never nil, which would be all of ours
	detach(cmd)
	err = cmd.Start()
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		return fmt.Errorf("starting the watchdog: %w", err)
	}
	d := &dog{in: w, cmd: cmd, since: time.Now(), gone: make(chan struct{})}
	go func() { // ends with the watchdog, which Close waits for
		_ = cmd.Wait()
		close(d.gone)
		g.lost(d)
	}()
	for _, id := range slices.Sorted(maps.Keys(g.entries)) {
		if err := d.write(g.entries[id]); err != nil {
			d.kill()
			return fmt.Errorf("starting the watchdog: it ended at once or doesn't read: %w", err)
		}
	}
	g.dog = d
	return nil
}

// lost replaces a watchdog that ended without being asked to.
func (g *Guard) lost(d *dog) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dog != d {
		return
	}
	g.dog = nil
	_ = d.in.Close()
	if time.Since(d.since) < steadyAfter {
		g.log("the watchdog ended at once", errors.New(d.cmd.ProcessState.String()))
		return
	}
	g.log("the watchdog died; starting another", errors.New(d.cmd.ProcessState.String()))
	g.restart()
}

func (g *Guard) log(msg string, err error) {
	if g.cfg.Log != nil {
		g.cfg.Log.Warn(msg, "error", err)
	}
}

func (d *dog) write(e entry) error {
	// not supported on every system; a watchdog always reads
	_ = d.in.SetWriteDeadline(time.Now().Add(writeWait))
	return json.NewEncoder(d.in).Encode(e)
}

// kill ends a watchdog without letting it see the pipe's end, which it would take for the bridge's.
func (d *dog) kill() {
	_ = d.cmd.Process.Kill()
	<-d.gone
	_ = d.in.Close()
}
