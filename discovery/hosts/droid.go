package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var factoryDroid = &config.Host{Name: "Factory Droid", Files: []config.File{
	{Scope: "project", Paths: config.Everywhere("{workspace}/.factory/mcp.json"), Format: droidFormat,
		Approval: config.NobodyAsks},
	{Scope: "user", Paths: config.Everywhere("{home}/.factory/mcp.json"), Format: droidFormat},
}}

var droidFormat = config.Plain(func(f *config.Format) {
	f.References, f.Enabled = config.Braces, ""
	f.Tools = config.ToolLists{Allow: "enabledTools", Deny: "disabledTools"}
})
