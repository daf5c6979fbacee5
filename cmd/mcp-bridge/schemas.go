package main

import (
	"path/filepath"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/schemas"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// openSchemas is where servers' tools are kept for searches; nil where the system has no such place.
func openSchemas() *schemas.Store {
	dir := cacheDir()
	if dir == "" {
		return nil
	}
	return schemas.Open(filepath.Join(dir, "tools"))
}

// keep keeps what a server has just said of its tools.
func (p *parts) keep(server discovery.Server, version, purpose string, tools []upstream.Tool) {
	list := schemas.List{Version: version, Purpose: purpose, AsOf: time.Now(), Tools: tools}
	if err := p.schemas.Save(schemas.Key(server), list); err != nil {
		p.log.Warn("a server's tools could not be kept for later searches", "server", server.Name, "err", err)
	}
}
