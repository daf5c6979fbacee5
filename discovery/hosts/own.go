package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

// own is the bridge's own files.
var own = &config.Host{Name: config.Own, Files: []config.File{
	{Scope: "shared", Paths: config.Everywhere("{config}/mcp/mcp.json"), Format: OwnFormat},
	{Scope: "user", Paths: config.Everywhere("{config}/mcp/servers/*.json"), Format: OwnFormat},
}}

// OwnFormat is of the bridge's own files: servers under either key, or a single entry.
var OwnFormat = config.Plain(func(f *config.Format) {
	f.Keys, f.Foreign, f.Single = []string{"mcpServers", "servers"}, "", true
	f.References = config.Braces
	f.Program.Dir, f.Program.EnvFile, f.Program.NullEnv = "cwd", "envFile", true
	f.Tools = config.ToolLists{Allow: "allowedTools", Deny: "disabledTools", Patterns: true}
	f.Remote.OAuth = claudeFormat.Remote.OAuth
	f.Remote.OAuth.ClientSecret = "clientSecret"
	f.Finish = func(e *config.Entry, m *config.Members) {
		if e.Transport != config.Stdio {
			e.HeadersHelper, e.BearerTokenEnv = m.Text("headersHelper"), m.Text("bearerTokenEnv")
		}
	}
})
