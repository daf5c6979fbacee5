package sandboxes

import (
	"cmp"
	"context"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A population is the sandboxes that live. It knows how many there may be, and which one ends for
// another. It is guarded by Registry.mu.
type population struct {
	most    int                // alive at a time, of all callers
	closed  bool               // no more are begun
	byID    map[string]*record // all that live
	leaving map[string]int     // by owner: how many have ended, and have their guests still to be saved
	left    chan struct{}      // closed when one of them has none any more
}

// of returns the sandboxes of an owner, the longest unused first.
func (p *population) of(owner string) (own []*record) {
	for _, b := range p.byID {
		if b.owner == owner {
			own = append(own, b)
		}
	}
	slices.SortFunc(own, longer)
	return own
}

// list describes the sandboxes of an owner, the last used first.
func (p *population) list(owner string) (all []Info) {
	for _, b := range slices.Backward(p.of(owner)) {
		if b.guest != nil {
			all = append(all, b.info())
		}
	}
	return all
}

// fits waits, before a guest of an owner is made, while those that have ended and are being saved
// are, together with those that live, more than may be alive. saveTimeout bounds it. If it waits it
// calls queued, since those behind may go first, and p; both may be nil. The error is the cause of
// ctx's end.
func (r *Registry) fits(ctx context.Context, owner string, queued func(), p runtime.Progress) error {
	for {
		r.mu.Lock()
		left := r.live.excess(owner)
		r.mu.Unlock()
		if left == nil {
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

// excess returns what is closed when one is gone, where there are more of an owner or of all than
// may be alive, those included that are being saved; otherwise nil.
func (p *population) excess(owner string) (left <-chan struct{}) {
	own, all := p.count(owner)
	for of, n := range p.leaving {
		all += n
		if of == owner {
			own += n
		}
	}
	if own <= PerOwner && all <= p.most {
		return nil
	}
	return p.left
}

// leaves counts a sandbox that has ended and is being saved, until gone is called.
func (p *population) leaves(owner string) (gone func()) {
	p.leaving[owner]++
	return func() {
		if p.leaving[owner]--; p.leaving[owner] == 0 {
			delete(p.leaving, owner)
		}
		close(p.left)
		p.left = make(chan struct{})
	}
}

// place reports whether one more sandbox of an owner is to replace another one. The error is a
// *FullError.
func (p *population) place(owner string) (replaces bool, err error) {
	if p.closed {
		return false, &FullError{closed: true}
	}
	own, bound := p.crowded(owner)
	if bound != "" {
		idle, pending := 0, 0 // idle ones that no other new one will take the place of
		for _, b := range p.of(owner) {
			switch {
			case b.replaces:
				idle--
				pending++
			case !b.busy:
				idle++
			}
		}
		if idle <= 0 && p.displaced(own+pending) == nil {
			return false, &FullError{Own: own, Most: p.most}
		}
	}
	return bound != "", nil
}

// displaced returns the sandbox that ends for one of an owner that has own, all of which are in
// use: of the owners that have most, the one that was not used for the longest time. That owner
// must have at least two more, so that it has no fewer than the other one afterwards. It is nil for
// none. A pause doesn't protect from that.
func (p *population) displaced(own int) *record {
	has := map[string]int{}
	for _, b := range p.byID {
		if !b.replaces {
			has[b.owner]++
		}
	}
	most := own + 1
	var found *record
	for _, b := range p.byID {
		if b.busy || has[b.owner] < most || has[b.owner] == most && (found == nil || longer(found, b) < 0) {
			continue
		}
		found, most = b, has[b.owner]
	}
	return found
}

// crowded returns how many sandboxes an owner has, and what bound doesn't let it have one more.
func (p *population) crowded(owner string) (own int, bound string) {
	own, all := p.count(owner)
	switch {
	case own >= PerOwner:
		bound = text.Plural(PerOwner, "sandbox") + " of a caller are"
	case all >= p.most:
		bound = text.Plural(p.most, "sandbox") + " in all " + are(p.most)
	}
	return own, bound
}

// count returns how many sandboxes an owner has, and all. Those that are to replace others aren't
// counted.
func (p *population) count(owner string) (own, all int) {
	for _, b := range p.byID {
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
func (p *population) replace(b *record) error {
	own, bound := p.crowded(b.owner)
	b.replaces = false
	if bound == "" {
		return nil
	}
	var ends *record
	for _, other := range p.of(b.owner) {
		if !other.busy && (ends == nil || ends.paused && !other.paused) {
			ends = other
		}
	}
	if ends != nil {
		ends.end("another one was begun, and no more than "+bound+" kept", saved)
		b.evicted = ends.id
		return nil
	}
	if other := p.displaced(own); other != nil {
		other.end("another caller, who has fewer, has begun one, and no more than "+bound+" kept", saved)
		return nil
	}
	b.replaces = true
	return &FullError{Own: own, Most: p.most}
}

// longer compares how long sandboxes were not used: it is negative for a before b.
func longer(a, b *record) int {
	return cmp.Or(a.used.Compare(b.used), a.created.Compare(b.created))
}
