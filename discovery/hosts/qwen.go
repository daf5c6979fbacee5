package hosts

import "github.com/mcp-bridge/mcp-bridge/discovery/config"

// qwenCode was made from Gemini CLI. Its trust in folders is about projects' files alone, and is
// off unless somebody has switched it on.
var qwenCode = &config.Host{
	Name: "Qwen Code", Format: geminiFormat, Files: qwenFiles,
	Dirs: geminiSystem("qwen", "QWEN_CODE", "qwen-code", "QwenCode"),
	Rules: func(r *config.Reader) config.Rules {
		lists := readGeminiLists(r, "Qwen Code", qwenFiles)
		lists.patterns = true
		return config.Rules{Denied: lists.denied}
	},
}

var qwenFiles = []config.File{
	{Scope: "system", Paths: config.Everywhere("{qwen system}")},
	{Scope: "project", Paths: config.Everywhere("{workspace}/.qwen/settings.local.json",
		"{workspace}/.qwen/settings.json"), Approval: config.HostAsks},
	{Scope: "user", Paths: config.Everywhere("{home}/.qwen/settings.json")},
	{Scope: "system defaults", Paths: config.Everywhere("{qwen defaults}")},
}
