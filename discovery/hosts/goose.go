package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

var goose = &config.Host{Name: "Goose", Format: gooseFormat, Files: []config.File{
	{Scope: "user", Paths: config.OnWindows("{config}/goose/config.yaml",
		"{appdata}/Block/goose/config/config.yaml")},
}, Install: &config.Install{
	ID: "goose", Program: "goose", User: []string{"user"},
	Entry: config.Object{{Name: "enabled", Value: config.Of(true)}, {Name: "type", Value: config.Of("stdio")},
		{Name: "name", Value: config.Of(config.Own)},
		{Name: "description", Value: config.Of("Runs Python that calls the tools of your MCP servers")},
		{Name: "timeout", Value: config.Of(toolSeconds)}},
	Next: "start a new session; GOOSE_MODE says whether Goose asks before it calls a tool",
	Off:  off("enabled", false),
}}

var gooseFormat = &config.Format{
	Key: "extensions", Foreign: "mcpServers", References: config.Dollars, Enabled: "enabled",
	Program: config.Program{Command: "cmd", Env: "envs"},
	Remote:  config.Remote{URLs: []config.URLKey{{Key: "uri", Transport: config.HTTP}}, Headers: "headers"},
	Tools:   config.ToolLists{Allow: "available_tools", EmptyIsAll: true},
	Prepare: func(o config.Object) (config.Object, config.Refusal) {
		return o, config.Refusal{Reason: map[string]string{
			"builtin":       "it is built into Goose, which alone can start it",
			"platform":      "it is a part of Goose itself",
			"frontend":      "it is a part of Goose's own window",
			"inline_python": "it is code within Goose's settings, which Goose alone runs",
		}[o.Text("type")]}
	},
	Finish: func(e *config.Entry, m *config.Members) {
		if e.Transport == config.Stdio {
			e.Keyring = m.Names("env_keys")
		}
	},
}
