package hosts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var openCode = &config.Host{
	Name: "OpenCode",
	Dirs: []config.Dir{{Name: "opencode.json", Var: "OPENCODE_CONFIG"},
		{Name: "opencode dir", Var: "OPENCODE_CONFIG_DIR"}},
	Files: openCodeFiles,
	Rules: func(r *config.Reader) config.Rules { return readOpenCode(r, "OpenCode", openCodeFiles) },
}

var openCodeFiles = []config.File{
	openCodeFile("managed", config.None, config.Paths{
		Linux: []string{"/etc/opencode/opencode.json", "/etc/opencode/opencode.jsonc"},
		Darwin: []string{"/Library/Application Support/opencode/opencode.json",
			"/Library/Application Support/opencode/opencode.jsonc"},
		Windows: []string{"C:/ProgramData/opencode/opencode.json", "C:/ProgramData/opencode/opencode.jsonc"},
	}),
	openCodeFile("OPENCODE_CONFIG", config.None, config.Everywhere("{opencode.json}",
		"{opencode dir}/opencode.json", "{opencode dir}/opencode.jsonc")),
	openCodeFile("project", config.NobodyAsks, config.Everywhere("{workspace}/.opencode/opencode.json",
		"{workspace}/.opencode/opencode.jsonc", "{workspace}/opencode.json", "{workspace}/opencode.jsonc")),
	openCodeFile("user", config.None, config.Everywhere("{home}/.opencode/opencode.json",
		"{home}/.opencode/opencode.jsonc",
		"{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc")),
}

// kiloCode was made from OpenCode, with files of its own.
var kiloCode = &config.Host{
	Name: "Kilo Code", Files: kiloFiles,
	Rules: func(r *config.Reader) config.Rules { return readOpenCode(r, "Kilo Code", kiloFiles) },
}

var kiloFiles = []config.File{
	openCodeFile("project", config.NobodyAsks, config.Everywhere("{workspace}/.kilo/kilo.json",
		"{workspace}/.kilo/kilo.jsonc",
		"{workspace}/kilo.json", "{workspace}/kilo.jsonc")),
	openCodeFile("user", config.None, config.Everywhere("{config}/kilo/kilo.json", "{config}/kilo/kilo.jsonc",
		"{config}/kilo/config.json")),
	{Scope: "older project", Paths: config.Everywhere("{workspace}/.kilocode/mcp.json"),
		Format: rooFormat("Kilo Code"), Approval: config.NobodyAsks},
	{Scope: "VS Code", Paths: extension("kilocode.kilo-code/settings/mcp_settings.json"),
		Format: rooFormat("Kilo Code")},
	{Scope: "older CLI", Paths: config.Everywhere("{home}/.kilocode/cli/global/settings/mcp_settings.json"),
		Format: rooFormat("Kilo Code")},
}

func openCodeFile(scope string, approval config.Approval, paths config.Paths) config.File {
	return config.File{Scope: scope, Paths: paths, Format: openCodeFormat, Approval: approval,
		Pick: pickOpenCode}
}

var openCodeFormat = config.Plain(func(f *config.Format) {
	f.Keys, f.Foreign, f.References = []string{"mcp"}, "mcpServers", config.Curly
	f.Program = config.Program{Command: "command", Array: true, Env: "environment", Dir: "cwd"}
	f.Remote.OAuth = config.OAuthKeys{Key: "oauth", ClientID: "clientId", ClientSecret: "clientSecret",
		Scopes: "scope"}
})

// pickOpenCode returns the servers under mcp, or, in the newer shape, those under mcp.servers.
func pickOpenCode(r *config.Reader, src config.Source, root config.Object) []config.Group {
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

// openCodeRules is what the files say of tools: the user's alone, and with those of the project and
// the administrator. A tool has to pass both lists, so that a project shows nothing that the user
// has hidden.
type openCodeRules struct {
	r                 *config.Reader
	host              string
	files             []config.File
	tools, permission config.Object
	from              map[string]config.Source // name → the file that says something of it
	last, unclear     config.Source
	off               map[string]config.Source // servers that the administrator has switched off
	lists             [][]config.ToolRule
}

// readOpenCode reads tools and permission of a host's files. Each file's go on top of those before,
// in OpenCode's own order, and permission goes on top of tools, which is its older name.
func readOpenCode(r *config.Reader, host string, files []config.File) config.Rules {
	o := &openCodeRules{r: r, host: host, files: files, from: map[string]config.Source{},
		off: map[string]config.Source{}}
	for _, scope := range []string{"user", "OPENCODE_CONFIG", "project", "managed"} {
		for _, file := range files {
			if file.Scope == scope {
				o.read(file)
			}
		}
		if scope == "OPENCODE_CONFIG" || scope == "managed" { // what OPENCODE_CONFIG names is the user's too
			o.close()
		}
	}
	return config.Rules{Off: o.switchedOff, Tools: o.of}
}

func (o *openCodeRules) read(file config.File) {
	paths := o.r.Expand(file.Paths)
	if file.Approval != config.None {
		slices.Reverse(paths) // the nearest last
		paths = slices.DeleteFunc(paths, func(p string) bool { return o.r.UsersOwn(o.files, p) })
	}
	for _, p := range paths {
		src := config.Source{Host: o.host, Scope: file.Scope, Path: p}
		f := o.r.Rule(src, false)
		if f.Exposed && file.Approval == config.None || f.Broken && file.Scope == "managed" {
			o.unclear = src // what it hides isn't known, or others could have it show what another file hides
		}
		if f.Rules == nil {
			continue
		}
		o.last = src
		tools, permission := f.Rules.Object("tools"), permissions(f.Rules.Get("permission"))
		for _, m := range slices.Concat(tools, permission) {
			o.from[m.Name] = src
		}
		o.tools, o.permission = config.Merge(o.tools, tools), config.Merge(o.permission, permission)
		if file.Scope == "managed" {
			o.readSwitches(f.Rules.Object("mcp"), src)
		}
	}
}

// close makes a list of what was read so far.
func (o *openCodeRules) close() {
	list := o.toolRules()
	if o.unclear != (config.Source{}) {
		list = []config.ToolRule{{Pattern: "*", Deny: true, From: o.unclear}}
	}
	if len(list) > config.MaxRules {
		if len(o.lists) == 0 {
			o.r.Problem(o.last, "", fmt.Sprintf("with it there are more than %d rules about tools; all "+
				"tools of %s's servers are hidden",
				config.MaxRules, o.host), "take out what isn't needed")
		}
		list = []config.ToolRule{{Pattern: "*", Deny: true, From: o.last}}
	}
	for i := range list {
		if o.r.Windows { // where OpenCode's patterns are of any case
			list[i].Pattern = strings.ToLower(list[i].Pattern)
		}
	}
	if list != nil && (len(o.lists) == 0 || !slices.Equal(o.lists[0], list)) {
		o.lists = append(o.lists, list)
	}
}

// readSwitches notes the servers that an administrator's file switches off: it need not say what
// they are.
func (o *openCodeRules) readSwitches(group config.Object, src config.Source) {
	for _, m := range slices.Concat(group, group.Object("servers")) {
		e, _ := m.Value.Object()
		if e.Get("enabled").Is("false") || e.Get("disabled").Is("true") {
			o.off[m.Name] = src
		}
	}
}

func (o *openCodeRules) switchedOff(e *config.Entry) config.Refusal {
	if by, ok := o.off[e.Name]; ok {
		return config.Refuse("it is disabled by "+o.host+"'s administrator, in "+by.String(),
			"ask the administrator")
	}
	return config.Refusal{}
}

// of returns the lists for one server.
func (o *openCodeRules) of(e *config.Entry) (lists []config.RuleList) {
	if e.File.Format != openCodeFormat {
		return nil
	}
	prefix := config.ToolName(e.Name) + "_"
	if o.r.Windows {
		prefix = strings.ToLower(prefix)
	}
	for _, rules := range o.lists {
		lists = append(lists, config.RuleList{Prefix: prefix, Rules: rules, AnyCase: o.r.Windows})
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

// toolRules makes one list of tools and permission. A permission that depends on what a tool is
// called with says nothing of the tool except what it says of *, which is how OpenCode asks about
// a server's tools. What is to be asked about isn't hidden.
func (o *openCodeRules) toolRules() (rules []config.ToolRule) {
	older := config.Object{}
	for _, m := range o.tools {
		action := "deny"
		if m.Value.Is("true") {
			action = "allow"
		}
		if slices.Contains([]string{"write", "edit", "patch"}, m.Name) {
			o.from["edit"] = o.from[m.Name]
			m.Name = "edit"
		}
		older = append(older, config.Member{Name: m.Name, Value: config.Word(action)})
	}
	for _, m := range config.Merge(older, o.permission) {
		words := config.Object{{Name: "*", Value: m.Value}}
		if inner, ok := m.Value.Object(); ok {
			words = inner
		}
		for _, when := range words {
			if word, ok := when.Value.Text(); ok && config.MatchStars(when.Name, "*") {
				rules = append(rules, config.ToolRule{Pattern: m.Name, Deny: word == "deny",
					From: o.from[m.Name]})
			}
		}
	}
	return rules
}
