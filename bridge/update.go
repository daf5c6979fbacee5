package bridge

import (
	"bytes"
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Changing is what Upstreams are whose servers can be replaced; *upstream.Pool is such. Both
// methods are used concurrently.
type Changing interface {
	// Update replaces the servers, and doesn't wait for those that are in use.
	Update(servers []discovery.Server)

	// Pin keeps the servers of this moment for everything that is done under the context that it
	// returns, until release.
	Pin(ctx context.Context) (pinned context.Context, release func())
}

// Update replaces the servers that code may call, and what is wrong with others. It takes effect
// between calls: one that is under way keeps the servers that it began with. Clients are told when
// the tools' definitions, which name the servers, have changed. It may be called concurrently,
// while serving or not; where Upstreams are not Changing, they have to know all servers already.
func (b *Bridge) Update(servers []discovery.Server, problems []discovery.Problem) {
	c := b.Catalog().With(servers, problems)
	b.mu.Lock()
	before := b.latest
	b.latest = c
	if u, ok := b.cfg.Upstreams.(Changing); ok {
		u.Update(servers)
	}
	differs := !bytes.Equal(before.InputSchema(b.limits), c.InputSchema(b.limits))
	if differs {
		b.offer(c)
	}
	b.mu.Unlock()
	if differs {
		b.clients.Changed(string(mcp.MethodNotificationToolsListChanged))
	}
}

// Catalog returns what is configured now.
func (b *Bridge) Catalog() *catalog.Catalog {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.latest
}

// pin returns what is configured now, and a context under which the upstreams are called as they
// are now, until release.
func (b *Bridge) pin(ctx context.Context) (pinned context.Context, c *catalog.Catalog, release func()) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if u, ok := b.cfg.Upstreams.(Changing); ok {
		ctx, release := u.Pin(ctx)
		return ctx, b.latest, release
	}
	return ctx, b.latest, func() {}
}
