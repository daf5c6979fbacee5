package main

import (
	"context"
	"slices"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/watch"
)

// follow has the bridge use what is configured on disk as it changes. The function that it returns ends that, and waits for it.
func (p *parts) follow(ctx context.Context) (stop func()) {
	if p.watcher == nil {
		return func() {}
	}
	p.changes.Lock()
	p.following = true
	p.changes.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { p.watcher.Run(ctx, p.found) })
	return func() {
		cancel()
		running.Wait()
	}
}

// found takes over what is configured now, and says what is different.
func (p *parts) found(c discovery.Catalog) {
	p.changes.Lock()
	defer p.changes.Unlock()
	p.configured = c
	before := p.catalog
	p.apply()
	c = p.catalog
	added, changed, removed := differences(before.Servers, c.Servers)
	p.log.Info("the configuration has changed", "added", added, "changed", changed, "removed", removed, "servers", len(c.Servers), "not_used", len(c.Problems),
		"not_approved", p.heldNames())
	p.tell(before.Problems)
}

// apply has the bridge use what is configured, as far as the user has approved it. The caller has p.changes.
func (p *parts) apply() {
	p.catalog = p.approvals.Update(p.configured)
	if len(p.heldNames()) > 0 {
		p.approvals.Reach()
	}
	p.bridge.Update(p.catalog.Servers, p.catalog.Problems)
}

// approved takes over that the user has said yes to something.
func (p *parts) approved() {
	p.changes.Lock()
	defer p.changes.Unlock()
	if p.following {
		p.apply()
	}
}

// tell says what isn't used, but for what is known already. A file that can't be read may hold any server, so that is a warning.
func (p *parts) tell(known []discovery.Problem) {
	for _, problem := range p.catalog.Problems {
		switch {
		case slices.Contains(known, problem):
		case problem.Server == "" && (problem.State == discovery.Broken || problem.State == discovery.Exposed):
			p.log.Warn("a configuration file can't be used", "problem", problem.String())
		default:
			p.log.Debug("not used", "problem", problem.String())
		}
	}
}

// tellListed warns of the files that MCP_BRIDGE_CONFIG names and that can't be used: whoever has set it means them.
func (p *parts) tellListed() {
	for _, problem := range p.catalog.Problems {
		if problem.Server == "" && problem.Source.Scope == discovery.Listed {
			p.log.Warn("a configuration file can't be used", "problem", problem.String())
		}
	}
}

// differences are the names of servers, by what has become of them.
func differences(before, now []discovery.Server) (added, changed, removed []string) {
	old := map[string]discovery.Server{}
	for _, s := range before {
		old[s.Name] = s
	}
	for _, s := range now {
		switch was, ok := old[s.Name]; {
		case !ok:
			added = append(added, s.Name)
		case !was.Same(s):
			changed = append(changed, s.Name)
		}
		delete(old, s.Name)
	}
	for _, s := range before {
		if _, gone := old[s.Name]; gone {
			removed = append(removed, s.Name)
		}
	}
	return added, changed, removed
}

// search is where servers are looked for: once, or again after each change on disk while calls are served.
func (p *parts) search(what purpose) {
	if nested() || what != serving {
		p.catalog = findServers(p.cfg)
		return
	}
	p.watcher = watch.New(discovery.Root(), discovery.Current(p.cfg.Config))
	p.catalog = p.watcher.Catalog()
}
