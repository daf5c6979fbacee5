package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

// devinDesktop is Windsurf's next name.
var devinDesktop = &config.Host{Name: "Devin Desktop", Format: windsurfFormat, Files: []config.File{
	{Scope: "project", Paths: config.Everywhere("{workspace}/.devin/mcp_config.json"),
		Approval: config.HostAsks},
	{Scope: "user", Paths: config.OnWindows("{config}/devin/mcp_config.json",
		"{appdata}/devin/mcp_config.json")},
}, Install: &config.Install{ID: "devin-desktop", User: []string{"user"}, Project: "project",
	Next: "press the refresh button of the MCP panel", Off: off("disabled", true)}}

var windsurf = &config.Host{Name: "Windsurf", Format: windsurfFormat, Files: []config.File{
	{Scope: "user", Paths: config.Everywhere("{home}/.codeium/windsurf/mcp_config.json")},
}, Install: &config.Install{ID: "windsurf", Program: "windsurf", User: []string{"user"},
	Next: "press the refresh button of the MCP panel", Off: off("disabled", true)}}

var windsurfFormat = config.Plain(func(f *config.Format) {
	f.References, f.Tools.Deny = config.PrefixedFiles, "disabledTools"
	f.Remote.URLs = serverURLs
})

// serverURLs are of hosts that have an older name for url.
var serverURLs = []config.URLKey{{Key: "serverUrl", Transport: config.HTTP},
	{Key: "url", Transport: config.HTTP}}
