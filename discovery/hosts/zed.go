package hosts

import (
	"slices"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var zed = &config.Host{Name: "Zed", Format: zedFormat, Files: []config.File{
	{Scope: "project", Paths: config.Everywhere("{workspace}/.zed/settings.json"), Approval: config.HostAsks},
	{Scope: "user", Paths: zedUser},
}, Install: &config.Install{
	ID: "zed", Program: "zed", User: []string{"user"}, Project: "project", Allow: zedAllow(),
	Next: "the Agent Panel's settings show the bridge with a green dot",
	Off:  off("enabled", false),
}}

var zedUser = config.OnWindows("{config}/zed/settings.json", "{appdata}/Zed/settings.json")

// zedAllow has Zed call our tools unasked; it knows them by such names since its version 0.224.
func zedAllow() (all []config.Preference) {
	for _, tool := range ownTools {
		path := []string{"agent", "tool_permissions", "tools", "mcp:" + config.Own + ":" + tool, "default"}
		all = append(all, config.Preference{Paths: zedUser, Path: path, Value: config.Of("allow")})
	}
	return all
}

var zedFormat = config.Plain(func(f *config.Format) {
	f.Key, f.Foreign, f.References, f.Disabled = "context_servers", "mcpServers", nil, ""
	f.Prepare = prepareZed
})

// prepareZed gives an older entry the newer shape: its command was an object with path, args and
// env.
func prepareZed(o config.Object) (config.Object, config.Refusal) {
	command := o.Get("command")
	if o.Text("type") == "" && command.Is("nothing") && o.Get("url").Absent() {
		return o, config.Refusal{Reason: "it has no command: these are settings of an extension, which " +
			"only Zed can start"}
	}
	if older, ok := command.Object(); ok {
		o = slices.Concat(o, config.Object{{Name: "command", Value: older.Get("path")},
			{Name: "args", Value: older.Get("args")}, {Name: "env", Value: older.Get("env")}})
	}
	return o, config.Refusal{}
}
