package hosts

import (
	"fmt"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var continueDev = &config.Host{Name: "Continue", Format: continueFormat, Files: []config.File{
	{Scope: "project", Paths: config.Everywhere("{workspace}/.continue/mcpServers/*.yaml"),
		Approval: config.NobodyAsks},
	{Scope: "user", Paths: config.Everywhere("{home}/.continue/config.yaml",
		"{home}/.continue/mcpServers/*.yaml")},
}}

var continueFormat = config.Plain(func(f *config.Format) {
	f.Foreign, f.Disabled, f.Enabled, f.Groups = "", "", "", continueGroups
	f.References, f.Program.Dir, f.Remote.Headers = config.Templates, "cwd", "requestOptions/headers"
	f.Finish = func(e *config.Entry, m *config.Members) {
		if key := m.Text("apiKey"); key != "" && e.Transport != config.Stdio {
			e.SetHeader("Authorization", "Bearer "+key)
		}
	}
})

// continueGroups returns the servers of a list, whose elements have a name. A file may have an
// object of them too.
func continueGroups(r *config.Reader, src config.Source, root config.Object) []config.Group {
	g := config.Group{Source: src}
	list, isList := root.Get("mcpServers").Array()
	if !isList {
		g.Entries, _ = r.Servers(src, root, "mcpServers")
	}
	for i, v := range list {
		o, isObject := v.Object()
		name, named := o.Get("name").Text()
		switch {
		case !isObject:
			r.Problem(src, "", fmt.Sprintf("entry %d of its list of servers is %s, not an object", i+1,
				v.Kind()), "correct it")
		case !named:
			r.Problem(src, "", fmt.Sprintf("entry %d of its list of servers has no name", i+1), "give it one")
		default:
			g.Entries = append(g.Entries, config.Member{Name: name, Value: v})
		}
	}
	return []config.Group{g}
}
