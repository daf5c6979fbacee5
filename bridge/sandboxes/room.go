package sandboxes

import "cmp"

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
// Those that are to replace others aren't counted.
func (r *Registry) crowded(owner string) (own int, bound string) {
	all := 0
	for _, b := range r.live {
		if b.replaces {
			continue
		}
		all++
		if b.owner == owner {
			own++
		}
	}
	switch {
	case own >= PerOwner:
		bound = plural(PerOwner, "sandbox") + " of a caller are"
	case all >= r.cfg.Most:
		bound = plural(r.cfg.Most, "sandbox") + " in all " + are(r.cfg.Most)
	}
	return own, bound
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
