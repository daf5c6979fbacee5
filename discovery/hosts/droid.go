package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var factoryDroid = &config.Host{Name: "Factory Droid", Format: droidFormat, Files: []config.File{
	{Scope: "project", Paths: config.Everywhere("{workspace}/.factory/mcp.json"),
		Approval: config.NobodyAsks},
	{Scope: "user", Paths: config.Everywhere("{home}/.factory/mcp.json")},
}}

var droidFormat = config.Plain(func(f *config.Format) {
	f.References, f.Enabled = config.Braces, ""
	f.Tools = config.ToolLists{Allow: "enabledTools", Deny: "disabledTools"}
})
