package bridge

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// StandingTools is how many tools the bridge has.
const StandingTools = 3

// StandingTokens estimates how many tokens the bridge's own tools and instructions take of a host's
// context.
func StandingTokens(c *catalog.Catalog) int {
	var tools []upstream.Tool
	for _, t := range [StandingTools]mcp.Tool{c.RunTool(catalog.Limits{}), catalog.SearchTool(false),
		output.Tool()} {
		raw, err := json.Marshal(t)
		var tool upstream.Tool
		if err == nil && json.Unmarshal(raw, &tool) == nil {
			tools = append(tools, tool)
		}
	}
	return catalog.DefinitionTokens(Name, tools) + catalog.Tokens(c.Instructions())
}
