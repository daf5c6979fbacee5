package bridge

import (
	"bytes"
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Update replaces the servers that code may call, and what is wrong with others. It takes effect
// between calls: one that is under way keeps the servers that it began with. Clients are told when
// the tools' definitions, which name the servers, have changed. It may be called concurrently,
// while serving or not.
func (b *Bridge) Update(servers []discovery.Server, problems []discovery.Problem) {
	c := b.Catalog().With(servers, problems)
	b.mu.Lock()
	before := b.latest
	b.latest = c
	b.cfg.Upstreams.Update(servers)
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
	pinned, release = b.cfg.Upstreams.Pin(ctx)
	return pinned, b.latest, release
}
