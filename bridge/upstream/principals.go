package upstream

import (
	"context"
	"fmt"
)

const (
	// maxIsolated is how many principals may have the same server for themselves at a time.
	maxIsolated = 64

	// maxIsolatedKnown bounds the entries that are kept of those who had.
	maxIsolatedKnown = 16 * maxIsolated
)

// owner is a principal that has a server for itself.
type owner struct{ server, principal string }

// WithPrincipal returns ctx for methods of Pool that are called for a principal. Of servers that
// are configured so it has sessions of its own; without one, there are those that all share.
func WithPrincipal(ctx context.Context, principal string) context.Context {
	return with(ctx, func(o *options) { o.principal = principal })
}

// ownEntry returns a principal's own entry of a server whose entry for all is shared. The caller
// has p.mu.
func (p *Pool) ownEntry(g *generation, shared *entry, of owner) *entry {
	if p.current.entries[of.server] == shared { // defined as in g, so the principal has one in both
		g = p.current
	}
	e := g.isolated[of]
	if e == nil {
		if len(g.isolated) >= maxIsolatedKnown {
			g.forgetUnused(p)
		}
		e = &entry{server: shared.server, principal: of.principal, hints: shared.hints, held: 1}
		g.isolated[of], p.known[e] = e, true
	}
	return e
}

// forgetUnused forgets principals' own entries that have no session. The caller has p.mu.
func (g *generation) forgetUnused(p *Pool) {
	for of, e := range g.isolated {
		if e.held == 1 && !e.used() {
			delete(g.isolated, of)
			delete(p.known, e)
		}
	}
}

// used reports whether there is a session, or may be one soon. The caller has the pool's mu.
func (e *entry) used() bool {
	return e.dial != nil || e.live != nil && (!isClosed(e.live.gone) || e.live.endErr != nil)
}

// crowded returns why a principal can't have a server for itself now; nil where it can. The caller
// has p.mu.
func (p *Pool) crowded(e *entry) error {
	if e.principal == "" {
		return nil
	}
	n := 0
	for other := range p.known {
		if other.principal != "" && other.server.Name == e.server.Name && other != e && other.used() {
			n++
		}
	}
	if n < maxIsolated {
		return nil
	}
	return fmt.Errorf("%d others have it for themselves now, which is the limit; call again later", n)
}
