module github.com/mcp-bridge/mcp-bridge/bench

go 1.26
