package bridge

import (
	"bytes"
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Update replaces the servers that code may call, and what is wrong with others. It takes effect
// between calls: one that is under way keeps the servers that it began with. Clients are told when
// the tools' definitions, which name the servers, have changed. It may be called concurrently,
// while serving or not.
func (b *Bridge) Update(servers []discovery.Server, problems []discovery.Problem) {
	b.mu.Lock()
	before := b.latest
	c := before.With(servers, problems)
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

// UpdatePolicy replaces the policy, for the runs and searches that begin from now on. It may be
// called concurrently, while serving or not.
func (b *Bridge) UpdatePolicy(p *policy.Policy) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest, b.broken = b.latest.WithPolicy(p), nil
	b.cfg.Packages.SetPolicy(p.Packages())
}

// policyError returns why there is no policy to go by, or nil.
func (b *Bridge) policyError() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.broken
}

// Catalog returns what is configured now, as it is for Local.
func (b *Bridge) Catalog() *catalog.Catalog {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.latest
}

// pin returns what is configured now for the principal of a request, and a context under which the
// upstreams are called as they are now for it, until release.
func (b *Bridge) pin(ctx context.Context) (pinned context.Context, c *catalog.Catalog, release func()) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	principal := requestOf(ctx).Principal()
	if principal != Local {
		ctx = upstream.WithPrincipal(ctx, principal)
	}
	pinned, release = b.cfg.Upstreams.Pin(ctx)
	return pinned, b.latest.For(principal), release
}
