package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var cursor = &config.Host{Name: "Cursor", Format: cursorFormat, Files: []config.File{
	{Scope: "project", Paths: config.Everywhere("{workspace}/.cursor/mcp.json"), Approval: config.HostAsks},
	{Scope: "user", Paths: config.Everywhere("{home}/.cursor/mcp.json")},
}, Install: &config.Install{ID: "cursor", Program: "cursor", User: []string{"user"}, Project: "project",
	Next: "Settings, MCP shows the bridge; Cursor asks before it calls a tool, until you allow it there"}}

var cursorFormat = config.Plain(func(f *config.Format) {
	f.References, f.Program.EnvFile = config.Editor, "envFile"
	f.Remote.OAuth = config.OAuthKeys{Key: "auth", ClientID: "CLIENT_ID", ClientSecret: "CLIENT_SECRET",
		Scopes: "scopes"}
})
