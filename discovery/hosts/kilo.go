package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

// kiloCode was made from OpenCode, with files of its own.
var kiloCode = &config.Host{
	Name: "Kilo Code", Format: openCodeFormat, Files: kiloFiles,
	Rules: func(r *config.Reader) config.Rules { return readOpenCode(r, "Kilo Code", kiloFiles) },
}

var kiloFiles = []config.File{
	{Scope: "project", Approval: config.NobodyAsks,
		Paths: config.Everywhere("{workspace}/.kilo/kilo.json(c)", "{workspace}/kilo.json(c)")},
	{Scope: "user", Paths: config.Everywhere("{config}/kilo/kilo.json(c)", "{config}/kilo/config.json")},
	{Scope: "older project", Paths: config.Everywhere("{workspace}/.kilocode/mcp.json"),
		Format: rooFormat("Kilo Code"), Approval: config.NobodyAsks},
	{Scope: "VS Code", Paths: extension("kilocode.kilo-code/settings/mcp_settings.json"),
		Format: rooFormat("Kilo Code")},
	{Scope: "older CLI", Paths: config.Everywhere("{home}/.kilocode/cli/global/settings/mcp_settings.json"),
		Format: rooFormat("Kilo Code")},
}
