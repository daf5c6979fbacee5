package hosts

import (
	"slices"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var openCode = &config.Host{
	Name: "OpenCode", Format: openCodeFormat,
	Dirs: []config.Dir{{Name: "opencode.json", Var: "OPENCODE_CONFIG"},
		{Name: "opencode dir", Var: "OPENCODE_CONFIG_DIR"}},
	Files: openCodeFiles,
	Install: &config.Install{
		ID: "opencode", Program: "opencode", User: []string{"user"}, Project: "project",
		Marks: config.Everywhere("{home}/.opencode", "{config}/opencode"),
		New:   config.Everywhere("{config}/opencode/opencode.json"), Key: openCodeKey,
		Entry: config.Object{{Name: "type", Value: config.Of("local")}},
		Next:  "opencode mcp list shows the bridge",
		Off:   openCodeOff,
	},
	Rules: func(r *config.Reader) config.Rules { return readOpenCode(r, "OpenCode", openCodeFiles) },
}

var openCodeFiles = []config.File{
	{Scope: "managed", Paths: config.PerSystem("/etc/opencode/opencode.json(c)",
		"/Library/Application Support/opencode/opencode.json(c)",
		"C:/ProgramData/opencode/opencode.json(c)")},
	{Scope: "OPENCODE_CONFIG",
		Paths: config.Everywhere("{opencode.json}", "{opencode dir}/opencode.json(c)")},
	{Scope: "project", Approval: config.NobodyAsks,
		Paths: config.Everywhere("{workspace}/.opencode/opencode.json(c)", "{workspace}/opencode.json(c)")},
	{Scope: "user", Paths: config.Everywhere("{home}/.opencode/opencode.json(c)",
		"{config}/opencode/opencode.json(c)")},
}

var openCodeFormat = config.Plain(func(f *config.Format) {
	f.Key, f.Foreign, f.References = "mcp", "mcpServers", config.Curly
	f.Program = config.Program{Command: "command", Array: true, Env: "environment", Dir: "cwd"}
	f.Remote.OAuth = config.OAuthKeys{Key: "oauth", ClientID: "clientId", ClientSecret: "clientSecret",
		Scopes: "scope"}
	f.Groups = openCodeGroups
})

// openCodeGroups returns the servers under mcp, or, in the newer shape, those under mcp.servers.
func openCodeGroups(r *config.Reader, src config.Source, root config.Object) []config.Group {
	group, _ := r.Servers(src, root, "mcp")
	inner, ok := group.Get("servers").Object()
	if !ok || !inner.Get("type").Is("nothing") {
		return []config.Group{{Source: src, Entries: group}}
	}
	older := config.Object{}
	for _, m := range group {
		if o, ok := m.Value.Object(); ok && !o.Get("type").Is("nothing") {
			older = append(older, m)
		}
	}
	return []config.Group{{Source: src, Entries: inner}, {Source: src, Entries: older}}
}

// openCodeKey returns where a file has its servers: in the newer shape, in an object of their own.
func openCodeKey(root config.Object) []string {
	inner, ok := root.At("mcp/servers").Object()
	if ok && inner.Get("type").Is("nothing") {
		return []string{"mcp", "servers"}
	}
	return []string{"mcp"}
}

// openCodeOff is the member of either shape.
func openCodeOff(entry []string) config.Preference {
	if len(entry) == len([]string{"mcp", "servers", "NAME"}) {
		return off("disabled", true)(entry)
	}
	return off("enabled", false)(entry)
}

// openCodeRules is what a host's files say of tools. A tool has to pass two lists, that of the
// user's files and that of all files, so that a project shows nothing that the user has hidden.
type openCodeRules struct {
	r     *config.Reader
	files []config.File
	all   []config.Setting
	lists [][]config.ToolRule
}

func readOpenCode(r *config.Reader, host string, files []config.File) config.Rules {
	o := &openCodeRules{r: r, files: files, all: r.Settings(host, files)}
	users := []string{"user", "OPENCODE_CONFIG"}
	own := o.list(users...)
	o.lists = append(o.lists, own)
	if len(own) != 1 || own[0].Pattern != "*" || !own[0].Deny { // else there is nothing left to hide
		if all := o.list(append(users, "project", "managed")...); !slices.Equal(own, all) {
			o.lists = append(o.lists, all)
		}
	}
	off := map[string]config.Source{} // an administrator's file need not say what they are
	for _, s := range o.all {
		group := s.Rules.Object("mcp")
		for _, m := range slices.Concat(group, group.Object("servers")) {
			e, _ := m.Value.Object()
			if s.File.Scope == "managed" && (e.Get("enabled").Is("false") || e.Get("disabled").Is("true")) {
				off[m.Name] = s.Source
			}
		}
	}
	return config.Rules{Tools: o.of, Off: func(name string) (config.Source, bool) {
		by, ok := off[name]
		return by, ok
	}}
}

// list makes one list of the files of some scopes. Each file's tools and permission go on top of
// those before, in OpenCode's own order, and permission goes on top of tools, its older name.
func (o *openCodeRules) list(scopes ...string) []config.ToolRule {
	var tools, permission config.Object
	from := map[string]config.Source{} // name → the file that says something of it
	var last config.Source
	for _, scope := range scopes {
		settings := slices.Clone(o.all)
		if scope == "project" {
			slices.Reverse(settings) // the nearest last
		}
		for _, s := range settings {
			inProject := s.File.Approval != config.None
			if s.File.Scope != scope || inProject && o.r.UsersOwn(o.files, s.Source.Path) {
				continue
			}
			if s.Exposed && !inProject || s.Broken && scope == "managed" {
				// What it hides isn't known, or others could have it show what another file hides.
				return []config.ToolRule{{Pattern: "*", Deny: true, From: s.Source}}
			}
			said, permitted := s.Rules.Object("tools"), permissions(s.Rules.Get("permission"))
			for _, m := range slices.Concat(said, permitted) {
				from[m.Name], last = s.Source, s.Source
			}
			tools, permission = config.Merge(tools, said), config.Merge(permission, permitted)
		}
	}
	return o.r.Bounded(last, openCodeTools(tools, permission, from))
}

// of returns the lists for one server.
func (o *openCodeRules) of(e *config.Entry) (lists []config.RuleList) {
	for _, rules := range o.lists {
		if e.File.Format == openCodeFormat && rules != nil {
			lists = append(lists, config.RuleList{Prefix: config.ToolName(e.Name) + "_", Rules: rules,
				AnyCase: o.r.Windows})
		}
	}
	return lists
}

// permissions returns what is said of permission: one word is about all tools.
func permissions(v config.Value) config.Object {
	if _, ok := v.Text(); ok {
		return config.Object{{Name: "*", Value: v}}
	}
	o, _ := v.Object()
	return o
}

// openCodeTools makes one list of tools and permission. A permission that depends on what a tool is
// called with says nothing of the tool except what it says of *, which is how OpenCode asks about
// a server's tools. What is to be asked about isn't hidden.
func openCodeTools(tools, permission config.Object, from map[string]config.Source) (rules []config.ToolRule) {
	older := config.Object{}
	for _, m := range tools {
		action := "deny"
		if m.Value.Is("true") {
			action = "allow"
		}
		if slices.Contains([]string{"write", "edit", "patch"}, m.Name) {
			from["edit"] = from[m.Name]
			m.Name = "edit"
		}
		older = append(older, config.Member{Name: m.Name, Value: config.Word(action)})
	}
	for _, m := range config.Merge(older, permission) {
		words := config.Object{{Name: "*", Value: m.Value}}
		if inner, ok := m.Value.Object(); ok {
			words = inner
		}
		for _, when := range words {
			if word, ok := when.Value.Text(); ok && config.MatchStars(when.Name, "*") {
				rules = append(rules, config.ToolRule{Pattern: m.Name, Deny: word == "deny",
					From: from[m.Name]})
			}
		}
	}
	return rules
}
