module github.com/mcp-bridge/mcp-bridge/bench

go 1.26.0

require github.com/mcp-bridge/mcp-bridge v0.0.0

replace github.com/mcp-bridge/mcp-bridge => ../
