package main

import (
	"path/filepath"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// openTools returns where servers' tools are kept for searches; nil where the system has no such place.
func openTools() *catalog.Store {
	dir := cacheDir()
	if dir == "" {
		return nil
	}
	return catalog.OpenStore(filepath.Join(dir, "tools"))
}

// keep keeps what a server has just said of its tools.
func (p *parts) keep(server discovery.Server, _, purpose string, tools []upstream.Tool) {
	list := catalog.List{Purpose: purpose, AsOf: time.Now(), Tools: tools}
	if err := p.tools.Save(catalog.Key(server), list); err != nil {
		p.log.Warn("a server's tools could not be kept for later searches", "server", server.Name, "err", err)
	}
}
