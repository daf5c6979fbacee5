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
// after a kill. A bridge that starts meanwhile asks the running one over a socket, which code can't
// answer by writing files. When a file was changed is read from its inode's change time, which no
// program can set.
//
// The package starts no servers and asks no user.
package approvals

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Config is what Approvals are made of.
type Config struct {
	Record  string       // the file of what is known; empty: nothing is kept, and each start is the first one
	Sockets []string     // directories in which bridges look for each other; each listens in the first it can
	Guard   Keeper       // nil: nothing is written after a kill
	Log     *slog.Logger // nil: silence
	Changed func()       // called after each yes; may be nil
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
	since time.Time                   // when this process or one beside it began to run code; zero: none does
	now   map[string]discovery.Server // by ID: what may be started; nil before the first Update
	yes   map[string]bool             // by ID: what the user has said yes to since this process started
	blind bool                        // another bridge knows what is known, and doesn't answer
	why   string                      // what has all servers held, as a clause; or empty
	dead  []string                    // directories to remove once the record is written
	over  bool                        // this process runs no code any more

	serves bool   // this process writes the record when it ends
	forget func() // what the Keeper keeps
	peers  peers
	door   *door // nil: others can't reach this process
	begin  sync.Once
}

// New learns what is known from the other bridges or, where none runs, from the record.
func New(cfg Config) *Approvals {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	a := &Approvals{cfg: cfg, yes: map[string]bool{}, state: state{Known: map[string]string{}}}
	a.peers.record, a.peers.places = cfg.Record, cfg.Sockets
	a.catchUp()
	return a
}

// Reach lets others reach this process until Close. It is for one whose user may say yes elsewhere,
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
	heard := a.peers.join()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.why = ""
	switch {
	case heard.silent:
		a.why = "another bridge, which knows what you have approved, doesn't answer"
		a.cfg.Log.Warn("servers are held: another bridge, which knows more, doesn't answer; continue it or end it")
		a.blind = true
	case len(heard.replies) == 0 && len(heard.dead) > 0:
		a.why = "a bridge has ended without writing the record of approved servers"
		if err := a.Writable(); err != nil {
			a.why = "the record of approved servers can't be written"
			a.cfg.Log.Warn("all servers are held", "err", err)
		} else if !slices.Equal(a.dead, heard.dead) {
			a.cfg.Log.Warn("all servers are held until you approve them: " + a.why)
		}
		a.state.learn(state{Served: spans{{Until: time.Now()}}})
		a.dead = heard.dead
	case len(heard.replies) == 0:
		s, err := readRecord(a.cfg.Record)
		if err != nil {
			a.why = "the record of approved servers can't be read"
			a.cfg.Log.Warn("the record of approved servers can't be read; new servers are held until you approve them",
				"err", err)
		}
		a.state.replaceGrants(s.Grants)
		a.state.learn(s)
		a.state.dirty, a.blind = false, false
	}
	a.hear(heard)
}

// hear takes over what other bridges have answered. The caller has a.mu.
func (a *Approvals) hear(heard answers) {
	for _, r := range heard.replies {
		a.state.learn(r.state)
		a.serving(r.Since)
	}
	if len(heard.replies) > 0 {
		a.state.replaceGrants(grantsOf(heard.replies)) // what was forgotten meanwhile is forgotten here too
	}
	if len(heard.replies) > 0 && !heard.silent {
		a.blind = false
	}
}

// serving notes that this process or one beside it runs code since then. The caller has a.mu.
func (a *Approvals) serving(since time.Time) {
	if a.over && !since.IsZero() { // this process doesn't; it only notes it
		a.state.Served = append(a.state.Served, span{since, time.Now()}).joined()
		return
	}
	if !since.IsZero() && (a.since.IsZero() || since.Before(a.since)) {
		a.since = since
	}
}

// Update takes over what is configured now, and returns it with the filters that its servers had
// before, which still hide what they hid. The first Update lets in what is known and what code
// can't have written; later ones let in only what the user has approved. What is gone from the
// configuration loses its approval.
func (a *Approvals) Update(c discovery.Catalog) discovery.Catalog {
	a.mu.Lock()
	first, before := a.now == nil, a.now
	served, known := a.served(), a.state.bounded()
	a.mu.Unlock()
	cold := map[string]bool{} // what code can't have written; the lock isn't held, since this reads the disk
	for _, s := range c.Servers {
		id := s.ID()
		if !first || known.Known[id] != "" {
			continue
		}
		files := append(known.deciders(s.Name, c.Looked), s.Files...)
		cold[id] = known.Held[id] == "" && !served.holds(changes(files))
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
			a.state.know(id)
			a.state.decides(decider(s.Name, s.Source.Path), today())
		} else {
			a.state.hold(id)
		}
		servers = append(servers, s)
	}
	for _, file := range c.Denying {
		a.state.decides(decider("", file), today())
	}
	for id := range before {
		if _, still := now[id]; !still {
			delete(a.yes, id)
			delete(a.state.Known, id)
			a.state.dirty = true
		}
	}
	a.now = now
	a.keep()
	c.Servers = servers
	return c
}

// served returns the times at which code was run, until now. The caller has a.mu.
func (a *Approvals) served() spans {
	if a.blind {
		return spans{{Until: time.Now()}} // it isn't known better
	}
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

// Approve takes the user's yes to a definition, for all bridges with this record. It returns how
// many others were told. With an error the yes counts in this process only: another bridge doesn't
// answer, or none runs and the record can't be written.
func (a *Approvals) Approve(s discovery.Server) (told int, err error) {
	if a.cfg.Changed != nil {
		defer a.cfg.Changed()
	}
	return a.change(message{Approve: s.ID()})
}

var errSilent = errors.New("another bridge doesn't answer; continue it or end it, then try again")

// settle writes the record for a process that runs no code any more, after it has sent m to the
// bridges that do. One may begin to run code between its answer and the writing, so it is asked
// again until nothing has changed.
func (a *Approvals) settle(m message) error {
	var before time.Time
	for again := false; ; again = true {
		heard := a.peers.send(m)
		serving := earliest(heard.replies)
		if again && serving.Equal(before) {
			return nil
		}
		if err := a.writeEnded(heard); err != nil || heard.silent {
			return err
		}
		before = serving
	}
}

func (a *Approvals) writeEnded(heard answers) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hear(heard)
	if a.blind || heard.silent {
		return nil // what is known better stays there
	}
	r := record{state: a.state, Serving: earliest(heard.replies)}
	r.Served = a.served()
	return a.write(r)
}

// earliest returns when the first of the bridges that still run code began to; zero: none does.
func earliest(replies []reply) (t time.Time) {
	for _, r := range replies {
		if !r.Since.IsZero() && (t.IsZero() || r.Since.Before(t)) {
			t = r.Since
		}
	}
	return t
}

// tick is more than the clock that files are stamped by lags behind time.Now.
const tick = 20 * time.Millisecond

// Begin notes that this process runs code from now on. It is called before each run; only the first
// call does something.
func (a *Approvals) Begin() {
	a.begin.Do(func() {
		a.Reach()
		a.mu.Lock()
		a.serving(time.Now().Add(-tick))
		since := a.since
		if !a.blind {
			if err := a.write(record{state: a.state, Serving: a.since}); err != nil {
				a.cfg.Log.Warn("what is known of approved servers can't be kept", "err", err)
			}
		}
		a.keep()
		known := a.state.bounded()
		a.mu.Unlock()
		a.peers.send(message{Since: since, Known: known.Known, Deciding: known.Deciding})
	})
}

// keep tells the Keeper what to write after a kill. The caller has a.mu.
func (a *Approvals) keep() {
	if !a.serves || a.blind || a.cfg.Guard == nil || a.cfg.Record == "" {
		return
	}
	before := a.forget
	a.forget = a.cfg.Guard.Keep(a.cfg.Record, record{state: a.state, Serving: a.since}.killed())
	if before != nil {
		before()
	}
}

// Close writes the record if others could reach this process, which they can't any more. It is
// called when nothing that runs code or serves it is left.
func (a *Approvals) Close() error {
	a.mu.Lock()
	door, due := a.door, a.serves && (a.state.dirty || !a.since.IsZero())
	if !a.blind {
		a.state.Served, a.since, a.over = a.served(), time.Time{}, true
	}
	a.mu.Unlock()
	var err error
	if due {
		err = a.settle(message{})
	}
	if door != nil {
		door.close(err == nil)
	}
	a.mu.Lock()
	late := err == nil && a.serves && a.state.dirty && !a.blind // it was told something while it wrote
	a.mu.Unlock()
	if late {
		err = a.settle(message{})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.forget != nil {
		a.forget()
	}
	return err
}
