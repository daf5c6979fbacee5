package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var continueDev = &config.Host{Name: "Continue", Files: []config.File{
	{Scope: "project", Paths: config.Everywhere("{workspace}/.continue/mcpServers/*.yaml"),
		Format: continueFormat, Approval: config.NobodyAsks},
	{Scope: "user", Paths: config.Everywhere("{home}/.continue/config.yaml",
		"{home}/.continue/mcpServers/*.yaml"), Format: continueFormat},
}}

var continueFormat = config.Plain(func(f *config.Format) {
	f.List, f.Foreign, f.Disabled, f.Enabled = true, "", "", ""
	f.References, f.Program.Dir, f.Remote.Headers = config.Templates, "cwd", "requestOptions/headers"
	f.Finish = func(e *config.Entry, m *config.Members) {
		if key := m.Text("apiKey"); key != "" && e.Transport != config.Stdio {
			e.SetHeader("Authorization", "Bearer "+key)
		}
	}
})
