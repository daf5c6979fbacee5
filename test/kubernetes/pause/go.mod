module github.com/mcp-bridge/mcp-bridge/test/kubernetes/pause

go 1.26
