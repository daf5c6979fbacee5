package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// errRetired is why the session of a server ends that is no longer configured as it was.
var errRetired = errors.New("its configuration has changed or is gone, and it isn't in use any more")

// A generation is the set of servers between two Updates. What has pinned it goes on with it,
// whatever is configured since.
type generation struct {
	entries  map[string]*entry
	isolated map[owner]*entry // of servers that each principal has for itself, made as they are used
	pins     int
}

// Pin returns a context under which the pool uses the servers as they are configured now, until
// release is called, which must be. A context that has a pin already keeps it. Pin may be called
// concurrently, and release more than once.
func (p *Pool) Pin(ctx context.Context) (pinned context.Context, release func()) {
	if optionsOf(ctx).servers != nil {
		return ctx, func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.current
	g.pins++
	ctx = with(ctx, func(o *options) { o.servers = g })
	return ctx, sync.OnceFunc(func() { p.unpin(g) })
}

// Update replaces the configured servers. One that is configured as before, with the secrets of
// before, keeps its connection. One that has changed is started again by the next call that isn't
// pinned to the old definition; the old one, and one that is gone, are closed when no pin holds
// them. It closes nothing itself that is in use, starts nothing and returns at once. It may be
// called concurrently with everything; after Close it does nothing.
func (p *Pool) Update(servers []discovery.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	before := p.current
	p.current = p.generation(servers, before)
	before.pins++ // let go of below, once the new one holds what stays
	p.release(before)
}

// generation returns a generation of these servers, with the entries of old whose definitions are
// the same. The caller has p.mu, or is NewPool, which has no old one.
func (p *Pool) generation(servers []discovery.Server, old *generation) *generation {
	g := &generation{entries: make(map[string]*entry, len(servers)), isolated: map[owner]*entry{}}
	if old == nil {
		old = &generation{}
	}
	for _, s := range servers {
		if g.entries[s.Name] != nil {
			continue
		}
		e := old.entries[s.Name]
		if e == nil || !e.server.Same(s) || !slices.Equal(e.server.Secrets, s.Secrets) ||
			e.server.Isolate != s.Isolate {
			e = &entry{server: s}
		}
		e.held++
		g.entries[s.Name], p.known[e] = e, true
	}
	for of, e := range old.isolated {
		if g.entries[of.server] == old.entries[of.server] {
			e.held++
			g.isolated[of] = e
		}
	}
	return g
}

func (p *Pool) unpin(g *generation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(g)
}

// release removes one pin. Without pins a generation that isn't the current one lets its entries
// go. The caller has p.mu.
func (p *Pool) release(g *generation) {
	if g.pins--; g.pins > 0 || g == p.current {
		return
	}
	letGo := func(e *entry) {
		if e.held--; e.held == 0 && e.live != nil {
			e.live.fail(errRetired)
		}
	}
	for _, e := range g.entries {
		letGo(e)
	}
	for _, e := range g.isolated {
		letGo(e)
	}
	for e := range p.known {
		if e.held == 0 && e.dial == nil && (e.live == nil || isClosed(e.live.gone) && e.live.endErr == nil) {
			delete(p.known, e)
		}
	}
}

// sessions returns those that have been started, of which some may have ended. The caller has p.mu.
func (p *Pool) sessions() (all []*session) {
	for e := range p.known {
		if e.live != nil {
			all = append(all, e.live)
		}
	}
	return all
}

// find returns the entry of a server, in the generation that ctx has pinned or else in the current
// one. The caller has p.mu.
func (p *Pool) find(ctx context.Context, server string) *entry {
	o := optionsOf(ctx)
	g := o.servers
	if g == nil {
		g = p.current
	}
	e := g.entries[server]
	if e == nil || !e.server.Isolate || o.principal == "" {
		return e
	}
	return p.ownEntry(g, e, owner{server, o.principal})
}

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
