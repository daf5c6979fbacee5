package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var crush = &config.Host{
	Name: "Crush", Format: crushFormat,
	Files: []config.File{
		{Scope: "project", Paths: config.Everywhere("{workspace}/.crush.json", "{workspace}/crush.json"),
			Approval: config.NobodyAsks},
		{Scope: "user", Paths: config.OnWindows("{config}/crush/crush.json",
			"{localappdata}/crush/crush.json")},
	},
}

var crushFormat = config.Plain(func(f *config.Format) {
	f.Key, f.Foreign, f.References, f.Enabled = "mcp", "mcpServers", config.Shell, ""
	f.Tools = config.ToolLists{Allow: "enabled_tools", Deny: "disabled_tools", EmptyIsAll: true}
})
