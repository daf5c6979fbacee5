package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

// Hosts with next to nothing of their own.
var (
	junie = &config.Host{Name: "Junie", Format: config.Plain(nil), Files: []config.File{
		{Scope: "project", Paths: config.Everywhere("{workspace}/.junie/mcp/mcp.json"),
			Approval: config.NobodyAsks},
		{Scope: "user", Paths: config.Everywhere("{home}/.junie/mcp/mcp.json")},
	}}
	lmStudio = &config.Host{Name: "LM Studio", Format: config.Plain(nil), Files: []config.File{
		{Scope: "user", Paths: config.Everywhere("{home}/.lmstudio/mcp.json",
			"{home}/.cache/lm-studio/mcp.json")},
	}, Install: &config.Install{ID: "lm-studio", Program: "lms", User: []string{"user"},
		Marks: config.Everywhere("{home}/.lmstudio", "{home}/.cache/lm-studio"),
		Next: "switch mcp/" + config.Own + " on in the sidebar's Program tab; LM Studio asks before it calls " +
			"a tool"}}
	warp = &config.Host{Name: "Warp", Format: warpFormat, Files: []config.File{
		{Scope: "user", Paths: config.Everywhere("{home}/.warp/.mcp.json")},
	}}
	antigravity = &config.Host{Name: "Antigravity", Format: antigravityFormat, Files: []config.File{
		{Scope: "project", Paths: config.Everywhere("{workspace}/.agents/mcp_config.json"),
			Approval: config.NobodyAsks},
		{Scope: "user", Paths: config.Everywhere("{home}/.gemini/config/mcp_config.json",
			"{home}/.gemini/antigravity/mcp_config.json")},
	}}
)

var warpFormat = config.Plain(func(f *config.Format) { f.Program.Dir = "working_directory" })

var antigravityFormat = config.Plain(func(f *config.Format) {
	f.Remote.URLs, f.Tools.Deny = serverURLs, "disabledTools"
})

var factoryDroid = &config.Host{Name: "Factory Droid", Format: droidFormat, Files: []config.File{
	{Scope: "project", Paths: config.Everywhere("{workspace}/.factory/mcp.json"),
		Approval: config.NobodyAsks},
	{Scope: "user", Paths: config.Everywhere("{home}/.factory/mcp.json")},
}}

var droidFormat = config.Plain(func(f *config.Format) {
	f.References, f.Enabled = config.Braces, ""
	f.Tools = config.ToolLists{Allow: "enabledTools", Deny: "disabledTools"}
})
