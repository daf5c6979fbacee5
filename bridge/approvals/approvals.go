// Package approvals decides which definitions of servers the bridge may start without asking its
// user.
//
// Code that runs in the sandbox may be able to write files, by way of a server that writes files.
// So a definition may be started unasked only if code can't have written it: it was there when the
// bridge started, and before that it was known already, or came while no code was run. Every other
// one is held until the user says yes.
//
// Code may also be able to write the record of what is known. So a bridge that runs code believes
// its memory and never the record. It writes the record when it ends, or has its watchdog write it
// after a kill, and one that starts meanwhile asks it over a socket, to which files lead nobody.
// What was changed when is told by the time of the last change of a file's inode, which nobody can
// set.
//
// The package starts nothing, and asks nobody.
package approvals

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Config is what Approvals are made of.
type Config struct {
	Record  string       // the file of what is known; empty: nothing is kept, and each start is the first one
	Sockets string       // the directory in which bridges with this record find each other; empty: they don't
	Guard   Keeper       // nil: nothing is written after a kill
	Log     *slog.Logger // nil: silence
	Changed func()       // called after each yes; nil: nothing is
}

// A Keeper writes a file, and removes another, after this process was killed; *guard.Guard is one.
type Keeper interface {
	Keep(path string, text []byte) (forget func())
	File(path string) (forget func())
}

// Approvals are those of one process. They are safe for concurrent use.
type Approvals struct {
	cfg Config

	mu    sync.Mutex
	state state
	since time.Time                   // since when code is run by this process, or one beside it; zero: none is
	now   map[string]discovery.Server // by ID: what is configured and may be started; nil before the first Update
	yes   map[string]bool             // by ID: what the user has said yes to since this process started
	dirty bool                        // the record lacks something

	serves bool   // this process writes the record when it ends
	forget func() // what the Keeper keeps
	door   *door  // nil: nobody can reach us
	begin  sync.Once
}

// New learns what is known from the other bridges or, where none runs, from the record.
func New(cfg Config) *Approvals {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &Approvals{cfg: cfg, yes: map[string]bool{}, state: state{Known: map[string]string{}}}
	a.catchUp()
	return a
}

// Reach has others reach this process until Close. It is for one whose user may say yes elsewhere,
// and is called before code is run.
func (a *Approvals) Reach() {
	a.mu.Lock()
	before := a.serves
	a.serves = true
	a.mu.Unlock()
	if !before {
		a.listen()
		a.catchUp()
	}
}

// catchUp learns what is known elsewhere.
func (a *Approvals) catchUp() {
	replies, silent := a.send(message{Do: doJoin})
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case silent:
		a.cfg.Log.Warn("another bridge doesn't say which servers its user has approved: those of changed files are held until you approve them")
		a.learn(state{Served: spans{{Until: time.Now()}}})
	case len(replies) == 0:
		s, err := readRecord(a.cfg.Record)
		if err != nil {
			a.cfg.Log.Warn("what is known of approved servers can't be read: servers of changed files are held until you approve them", "err", err)
		}
		a.learn(s)
		a.dirty = false
	}
	for _, r := range replies {
		a.learn(r.state)
		a.serving(r.Since)
	}
}

// learn takes over what another bridge knows. The caller has a.mu.
func (a *Approvals) learn(s state) {
	for id, day := range s.Known {
		if a.state.Known[id] < day {
			a.state.Known[id], a.dirty = day, true
		}
	}
	a.state.Served = append(a.state.Served, s.Served...).joined()
}

// serving notes that code is run since then, by this process or one beside it. The caller has a.mu.
func (a *Approvals) serving(since time.Time) {
	if !since.IsZero() && (a.since.IsZero() || since.Before(a.since)) {
		a.since = since
	}
}

// Update takes over what is configured now, and returns it with what it may not lose: filters that
// a server had before still hide what they hid. The first time, what is known and what code can't
// have written is let in; after that, nothing is but by a yes. What is gone is let in no more.
func (a *Approvals) Update(c discovery.Catalog) discovery.Catalog {
	a.mu.Lock()
	first, before := a.now == nil, a.now
	served := a.served()
	a.mu.Unlock()
	cold := map[string]bool{} // that code can't have written; found out without the lock, since it asks the disk
	for _, s := range c.Servers {
		if id := s.ID(); first && !a.knows(id) && !served.holds(changes(s.Files)) {
			cold[id] = true
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := map[string]discovery.Server{}
	servers := make([]discovery.Server, 0, len(c.Servers))
	for _, s := range c.Servers {
		id := s.ID()
		was, there := before[id]
		in := there || a.yes[id] || first && (cold[id] || a.state.Known[id] != "")
		if there && in {
			in = s.Narrow(was)
		}
		if in {
			now[id] = s
			a.know(id)
		}
		servers = append(servers, s)
	}
	for id := range before {
		if _, still := now[id]; !still {
			delete(a.yes, id)
			delete(a.state.Known, id)
			a.dirty = true
		}
	}
	a.now = now
	a.keep()
	c.Servers = servers
	return c
}

func (a *Approvals) knows(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Known[id] != ""
}

// know notes that a definition may be started now and later. The caller has a.mu.
func (a *Approvals) know(id string) {
	if day := time.Now().UTC().Format(time.DateOnly); a.state.Known[id] != day {
		a.state.Known[id], a.dirty = day, true
	}
}

// served are the times at which code was run, until now. The caller has a.mu.
func (a *Approvals) served() spans {
	if a.since.IsZero() {
		return a.state.Served
	}
	return append(a.state.Served[:len(a.state.Served):len(a.state.Served)], span{a.since, time.Now()}).joined()
}

// Held reports whether a server may not be started without the user's yes.
func (a *Approvals) Held(s discovery.Server) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, in := a.now[s.ID()]
	return !in && !a.yes[s.ID()]
}

// Approve takes the user's yes to a definition, for all bridges with this record. It reports to how
// many of them that was told. The error is of a record that can't be written where it is the only
// place for the yes.
func (a *Approvals) Approve(s discovery.Server) (told int, err error) {
	a.approve(s.ID())
	if a.cfg.Changed != nil {
		defer a.cfg.Changed()
	}
	replies, _ := a.send(message{Do: doApprove, ID: s.ID()})
	a.mu.Lock()
	defer a.mu.Unlock() // before Changed
	if !a.serves && len(replies) == 0 {
		return 0, a.write(a.ended())
	}
	return len(replies), nil
}

func (a *Approvals) approve(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.yes[id] = true
	delete(a.now, id) // and with it the filters that it had before
	a.know(id)
	a.keep()
}

// tick is more than the clock that files are stamped by lags behind time.Now.
const tick = 20 * time.Millisecond

// Begin notes that code is run from now on. It is called before each run, and does something before
// the first.
func (a *Approvals) Begin() { a.begin.Do(a.first) }

func (a *Approvals) first() {
	a.Reach()
	a.mu.Lock()
	a.serving(time.Now().Add(-tick))
	since := a.since
	if err := a.write(a.open()); err != nil {
		a.cfg.Log.Warn("what is known of approved servers can't be kept", "err", err)
	}
	a.keep()
	known := maps.Clone(a.state.Known)
	a.mu.Unlock()
	a.send(message{Do: doLearn, Since: since, Known: known})
}

// keep has the Keeper know what to write after a kill. The caller has a.mu.
func (a *Approvals) keep() {
	if !a.serves || a.cfg.Guard == nil || a.cfg.Record == "" {
		return
	}
	before := a.forget
	a.forget = a.cfg.Guard.Keep(a.cfg.Record, a.killed())
	if before != nil {
		before()
	}
}

// Close writes the record, if this process could be reached, and is reached no more. It is called
// when nothing that runs code or serves it is left.
func (a *Approvals) Close() error {
	a.mu.Lock()
	door := a.door
	a.mu.Unlock()
	if door != nil {
		door.close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var err error
	if a.serves && (a.dirty || !a.since.IsZero()) {
		err = a.write(a.ended())
	}
	if a.forget != nil {
		a.forget()
	}
	return err
}
