package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var cursor = &config.Host{Name: "Cursor", Format: cursorFormat, Files: []config.File{
	{Scope: "project", Paths: config.Everywhere("{workspace}/.cursor/mcp.json"), Approval: config.HostAsks},
	{Scope: "user", Paths: config.Everywhere("{home}/.cursor/mcp.json")},
}}

var cursorFormat = config.Plain(func(f *config.Format) {
	f.References, f.Program.EnvFile = config.Editor, "envFile"
	f.Remote.OAuth = config.OAuthKeys{Key: "auth", ClientID: "CLIENT_ID", ClientSecret: "CLIENT_SECRET",
		Scopes: "scopes"}
})
