package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var claudeDesktop = &config.Host{Name: "Claude Desktop", Format: claudeDesktopFormat, Files: []config.File{
	{Scope: "user", Paths: config.Settings("Claude/claude_desktop_config.json")},
}, Install: &config.Install{ID: "claude-desktop", User: []string{"user"},
	Next: "quit Claude Desktop and start it again", Extension: true}}

var claudeDesktopFormat = config.Plain(func(f *config.Format) {
	f.Strict, f.References = true, nil
	f.Finish = func(e *config.Entry, m *config.Members) {
		if e.Transport != config.Stdio {
			m.Refuse("it is a remote server, and Claude Desktop starts programs only",
				"take it out, or add it as a connector of Claude Desktop")
		}
	}
})
