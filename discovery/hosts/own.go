package hosts

import (
	"path"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// own is the bridge's own files.
var own = &config.Host{Name: config.Own, Format: OwnFormat, Files: []config.File{
	{Scope: "shared", Paths: config.Everywhere("{config}/mcp/mcp.json")},
	{Scope: "user", Paths: config.Everywhere("{config}/mcp/servers/*.json"), Secrets: true},
}}

// OwnFormat is of the bridge's own files: servers under either of two keys, or a single entry.
var OwnFormat = config.Plain(func(f *config.Format) {
	f.Foreign, f.Groups = "", ownGroups
	f.References = config.Braces
	f.Program.Dir, f.Program.EnvFile, f.Program.NullEnv = "cwd", "envFile", true
	f.Tools = config.ToolLists{Allow: "allowedTools", Deny: "disabledTools", Patterns: true}
	f.Remote.OAuth = claudeFormat.Remote.OAuth
	f.Remote.OAuth.ClientSecret = "clientSecret"
	f.Finish = func(e *config.Entry, m *config.Members) {
		if m.Get("type").Absent() && !m.Get("command").Absent() && !m.Get("url").Absent() {
			m.Refuse("it has a command and a url",
				`take one of them out, or write which one counts: "type": "stdio" or "http"`)
		}
		e.Isolate = m.Flag("isolate").Is("true")
		m.RefuseNear("isolate") // or what is to be kept apart would be shared
		if e.Transport != config.Stdio {
			e.HeadersHelper, e.BearerTokenEnv = m.Text("headersHelper"), m.Text("bearerTokenEnv")
		}
	}
})

func ownGroups(r *config.Reader, src config.Source, root config.Object) (groups []config.Group) {
	for _, key := range []string{"mcpServers", "servers"} {
		if entries, there := r.Servers(src, root, key); there {
			groups = append(groups, config.Group{Source: src, Entries: entries,
				Description: root.Text("description")})
		}
	}
	switch {
	case groups != nil:
	case !root.Get("command").Is("nothing"), !root.Get("url").Is("nothing"): // named after the file
		name := path.Base(strings.ReplaceAll(src.Path, `\`, "/"))
		groups = []config.Group{{Source: src, Entries: config.Object{
			{Name: strings.TrimSuffix(name, path.Ext(name)), Value: root.Value()}}}}
	default:
		r.Problem(src, "", `it holds no servers: there is neither an object "mcpServers" nor a "command"`,
			`write {"mcpServers": {"name": {"command": "…"}}}`)
	}
	return groups
}
