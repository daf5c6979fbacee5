package sandboxes

import (
	"cmp"
	"context"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// fits waits, before a guest of b is made, while those that have ended and are being saved are,
// together with those that live, more than may be alive. saveTimeout bounds it. If it waits it
// calls queued, since those behind may go first, and p; both may be nil. The error is the cause of
// ctx's end.
func (r *Registry) fits(ctx context.Context, b *record, queued func(), p runtime.Progress) error {
	for {
		r.mu.Lock()
		own, all := r.count(b.owner)
		for owner, n := range r.leaving {
			all += n
			if owner == b.owner {
				own += n
			}
		}
		left := r.left
		r.mu.Unlock()
		if own <= PerOwner && all <= r.cfg.Most {
			return nil
		}
		if queued != nil {
			queued()
		}
		if p != nil {
			p("waiting until another sandbox has been saved")
		}
		queued, p = nil, nil
		select {
		case <-left:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// leaves counts a sandbox that has ended and is being saved, until gone is called with mu held. It
// is called with mu held.
func (r *Registry) leaves(owner string) (gone func()) {
	r.leaving[owner]++
	return func() {
		if r.leaving[owner]--; r.leaving[owner] == 0 {
			delete(r.leaving, owner)
		}
		close(r.left)
		r.left = make(chan struct{})
	}
}

// room reports whether one more sandbox of an owner is to replace another one. The error is a
// *FullError. It is called with mu held, like all functions below.
func (r *Registry) room(owner string) (replaces bool, err error) {
	if r.closed {
		return false, &FullError{closed: true}
	}
	own, bound := r.crowded(owner)
	if bound != "" {
		idle, pending := 0, 0 // idle ones that no other new one will take the place of
		for _, b := range r.of(owner) {
			switch {
			case b.replaces:
				idle--
				pending++
			case !b.busy:
				idle++
			}
		}
		if idle <= 0 && r.displaced(own+pending) == nil {
			return false, &FullError{Own: own, Most: r.cfg.Most}
		}
	}
	return bound != "", nil
}

// displaced returns the sandbox that ends for one of an owner that has own, all of which are in
// use: of the owners that have most, the one that was not used for the longest time. That owner
// must have at least two more, so that it has no fewer than the other one afterwards. It is nil for
// none. A pause doesn't protect from that.
func (r *Registry) displaced(own int) *record {
	has := map[string]int{}
	for _, b := range r.live {
		if !b.replaces {
			has[b.owner]++
		}
	}
	most := own + 1
	var found *record
	for _, b := range r.live {
		if b.busy || has[b.owner] < most || has[b.owner] == most && (found == nil || longer(found, b) < 0) {
			continue
		}
		found, most = b, has[b.owner]
	}
	return found
}

// crowded returns how many sandboxes an owner has, and what bound doesn't let it have one more.
func (r *Registry) crowded(owner string) (own int, bound string) {
	own, all := r.count(owner)
	switch {
	case own >= PerOwner:
		bound = plural(PerOwner, "sandbox") + " of a caller are"
	case all >= r.cfg.Most:
		bound = plural(r.cfg.Most, "sandbox") + " in all " + are(r.cfg.Most)
	}
	return own, bound
}

// count returns how many sandboxes an owner has, and all. Those that are to replace others aren't
// counted.
func (r *Registry) count(owner string) (own, all int) {
	for _, b := range r.live {
		if b.replaces {
			continue
		}
		all++
		if b.owner == owner {
			own++
		}
	}
	return own, all
}

// replace ends a sandbox for b, which has come to life in its place, if there is no room for both.
func (r *Registry) replace(b *record) error {
	own, bound := r.crowded(b.owner)
	b.replaces = false
	if bound == "" {
		return nil
	}
	var ends *record
	for _, other := range r.of(b.owner) {
		if !other.busy && (ends == nil || ends.paused && !other.paused) {
			ends = other
		}
	}
	if ends != nil {
		ends.end("another one was begun, and no more than "+bound+" kept", saved)
		b.evicted = ends.id
		return nil
	}
	if other := r.displaced(own); other != nil {
		other.end("another caller, who has fewer, has begun one, and no more than "+bound+" kept", saved)
		return nil
	}
	b.replaces = true
	return &FullError{Own: own, Most: r.cfg.Most}
}

// longer compares how long sandboxes were not used: it is negative for a before b.
func longer(a, b *record) int {
	return cmp.Or(a.used.Compare(b.used), a.created.Compare(b.created))
}
