package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var kiro = &config.Host{Name: "Kiro", Format: kiroFormat, Files: []config.File{
	{Scope: "workspace", Paths: config.Everywhere("{workspace}/.kiro/settings/mcp.json"),
		Approval: config.NobodyAsks},
	{Scope: "user", Paths: config.Everywhere("{home}/.kiro/settings/mcp.json")},
}, Install: &config.Install{
	ID: "kiro", Program: "kiro", Marks: config.Everywhere("{home}/.kiro"), User: []string{"user"},
	Project: "workspace", Unasked: config.Object{{Name: "autoApprove", Value: config.Of(ownTools)}},
	Next: "Kiro's MCP panel shows the bridge",
	Off:  off("disabled", true),
}}

// amazonQ is Kiro's former name.
var amazonQ = &config.Host{Name: "Amazon Q", Format: kiroFormat, Files: []config.File{
	{Scope: "user", Paths: config.Everywhere("{home}/.aws/amazonq/mcp.json")},
}}

var kiroFormat = config.Plain(func(f *config.Format) {
	f.References, f.Enabled, f.Tools.Deny = config.Braces, "", "disabledTools"
})
