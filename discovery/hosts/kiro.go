package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var kiro = &config.Host{Name: "Kiro", Files: []config.File{
	{Scope: "workspace", Paths: config.Everywhere("{workspace}/.kiro/settings/mcp.json"), Format: kiroFormat,
		Approval: config.NobodyAsks},
	{Scope: "user", Paths: config.Everywhere("{home}/.kiro/settings/mcp.json"), Format: kiroFormat},
}}

// amazonQ is Kiro's former name.
var amazonQ = &config.Host{Name: "Amazon Q", Files: []config.File{
	{Scope: "user", Paths: config.Everywhere("{home}/.aws/amazonq/mcp.json"), Format: kiroFormat},
}}

var kiroFormat = config.Plain(func(f *config.Format) {
	f.References, f.Enabled, f.Tools.Deny = config.Braces, "", "disabledTools"
})
