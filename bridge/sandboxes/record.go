package sandboxes

import (
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// record is one sandbox. Its fields except for the first three are guarded by registry.mu.
type record struct {
	registry *Registry
	id       string
	owner    string

	settings Settings
	env      *sandbox.Environment
	guest    Guest // nil until the first call has made it
	calls    int   // runs of code
	created  time.Time
	born     time.Time // as created, or when it was woken
	used     time.Time // last; the beginning or end of a call

	claim  *hibernation.Claim // of one that was woken, or is to be; nil otherwise
	untold bool               // it was woken, and no run has said so

	busy     bool // a call is under way
	waiting  []*waiter
	over     bool   // it has ended
	evicted  string // the id of what has ended for it; empty for none
	replaces bool   // another one ends when it has a guest, which may have to be found still
	expires  *time.Timer

	paused bool
	since  time.Time     // when it was paused, or went on
	active time.Duration // that it was not paused, before since
}

// A waiter is a call in line for a sandbox.
type waiter struct {
	turn chan struct{} // closed when it is its turn, or there isn't one for it
	gone *GoneError    // why there isn't one; set before turn is closed
}

// queue puts a call in line, which is first if no call is under way. It resumes a paused sandbox.
// The error is a *BusyError. It is called with mu held, like all methods of a record.
func (b *record) queue() (*waiter, error) {
	w := &waiter{turn: make(chan struct{})}
	b.resume()
	switch {
	case !b.busy:
		b.busy = true
		b.used = time.Now()
		b.stopTimer()
		close(w.turn)
	case len(b.waiting) >= maxWait:
		return nil, &BusyError{ID: b.id, Waiting: len(b.waiting)}
	default:
		b.waiting = append(b.waiting, w)
	}
	return w, nil
}

// leaveQueue takes a call out of the line, and reports whether it was in it.
func (b *record) leaveQueue(w *waiter) bool {
	i := slices.Index(b.waiting, w)
	if i < 0 {
		return w.gone != nil
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return true
}

// next ends the turn of a call. What is due to end ends then, otherwise it is the next one's turn.
func (b *record) next() {
	if b.over {
		return
	}
	now := time.Now()
	b.used = now
	if at, reason, f := b.due(); !at.After(now) {
		b.end(reason, f)
		return
	}
	if len(b.waiting) > 0 {
		w := b.waiting[0]
		b.waiting = b.waiting[1:]
		close(w.turn)
		return
	}
	b.busy = false
	if b.guest == nil { // the first call has failed, so no one knows of it
		b.forget()
		if b.claim != nil {
			b.claim.Drop()
		}
		return
	}
	b.schedule()
}

// due returns when it ends if no call comes, why, and how.
func (b *record) due() (at time.Time, reason string, f fate) {
	cfg := b.registry.cfg
	at, reason, f = b.born.Add(cfg.MaxAge), "it was "+age(cfg.MaxAge)+" old, which is the most", removed
	sooner := func(t time.Time, why string, how fate) {
		if t.Before(at) {
			at, reason, f = t, why, how
		}
	}
	s := b.settings
	switch {
	case !b.paused:
		if s.Timeout > 0 { // before the other: what was saved with no time left would end as it wakes
			sooner(b.since.Add(s.Timeout-b.active), "it was active for "+age(s.Timeout)+", its timeout_seconds",
				removed)
		}
		sooner(b.used.Add(cfg.Idle), "it was not used for "+age(cfg.Idle), saved)
	case s.AutoDelete > 0:
		sooner(b.since.Add(s.AutoDelete), "it was paused for "+age(s.AutoDelete)+", its auto_delete_seconds",
			removed)
	}
	return at, reason, f
}

// schedule has it end when that is due, if no call comes.
func (b *record) schedule() {
	b.stopTimer()
	if b.busy || b.over {
		return
	}
	at, _, _ := b.due()
	b.expires = time.AfterFunc(time.Until(at), func() {
		b.registry.mu.Lock()
		defer b.registry.mu.Unlock()
		if b.busy || b.over {
			return
		}
		if at, reason, f := b.due(); !at.After(time.Now()) {
			b.end(reason, f)
		}
	})
}

func (b *record) stopTimer() {
	if b.expires != nil {
		b.expires.Stop()
		b.expires = nil
	}
}

// end ends it, with the call under way in it and those in line.
func (b *record) end(reason string, f fate) {
	if b.over {
		return
	}
	r := b.registry
	rest := b.resting(f)
	b.forget()
	r.bury(b.id, b.owner, reason)
	for _, w := range b.waiting {
		w.gone = &GoneError{ID: b.id, Reason: reason, Live: r.live.list(b.owner)}
		close(w.turn)
	}
	b.waiting = nil
	if b.guest != nil || b.claim != nil {
		gone := func() {}
		if b.saves(f) {
			gone = r.live.leaves(b.owner)
		}
		r.work.Go(func() {
			rest()
			if b.guest != nil {
				_ = b.guest.Close() // what it could not end, the engine's own clock does
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			gone()
		})
	}
}

// forget takes it out of the registry, as if it had never been.
func (b *record) forget() {
	b.over = true
	b.stopTimer()
	delete(b.registry.live.byID, b.id)
}

// lives takes the guest that was made for it. The error says why there is no place for it, and is
// nil if it has ended meanwhile; the guest is closed then.
func (b *record) lives(g Guest, env *sandbox.Environment) (bool, error) {
	r := b.registry
	var err error
	if !b.over && b.replaces {
		err = r.live.replace(b)
	}
	if b.over || err != nil {
		r.work.Go(func() { _ = g.Close() })
		return false, err
	}
	b.guest, b.env, b.untold = g, env, b.claim != nil
	r.work.Go(func() {
		<-g.Done()
		reason, _ := g.Ended()
		r.mu.Lock()
		defer r.mu.Unlock()
		b.end(reason, lost)
	})
	return true, nil
}

// resume ends a pause.
func (b *record) resume() {
	if b.paused {
		now := time.Now()
		b.paused, b.since, b.used = false, now, now
	}
}

// pause begins a pause.
func (b *record) pause() {
	if !b.paused {
		now := time.Now()
		b.active += now.Sub(b.since)
		b.paused, b.since = true, now
	}
}
