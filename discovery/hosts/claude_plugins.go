package hosts

import (
	"path"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// maxPlugins bounds how many plugins are looked at, how many skills, and how many parts of one
// plugin's manifest.
const maxPlugins = 300

const (
	manifestFile = "/.claude-plugin/plugin.json"
	skillsDir    = "@skills-dir" // in the place of a marketplace
)

// plugin is one of Claude Code's.
type plugin struct {
	id        string // name@marketplace, or name@skills-dir for one that lies among the skills
	name      string
	root      string // its directory, with slashes
	manifest  config.Object
	off       config.Refusal // why Claude Code doesn't load it
	ofProject bool           // it is a project's skill
}

// pluginSetting is the last word of the settings on a plugin.
type pluginSetting struct {
	on     bool
	source config.Source
	by     authority
}

// groups returns the servers that the user has added for this project only, or those of plugins: of
// the ones that are installed for the user or for this project, and of those in a directory of
// skills.
func (c *claude) groups(scope string) (groups []config.Group) {
	if scope == config.LocalScope {
		src := c.projectIn
		src.Scope = config.LocalScope
		entries, _ := c.r.Servers(src, c.project, "mcpServers")
		return []config.Group{{Source: src, Entries: entries}}
	}
	for _, p := range c.r.Expand(config.Everywhere("{claude}/plugins/installed_plugins.json")) {
		members := c.load(p).Object("plugins")
		byName := func(a, b config.Member) int { return strings.Compare(a.Name, b.Name) }
		slices.SortStableFunc(members, byName)
		for _, m := range members[:min(len(members), maxPlugins)] {
			if root := c.installedAt(m.Value); root != "" {
				groups = append(groups, c.plugin(c.listedPlugin(m.Name, root))...)
			}
		}
	}
	users := c.r.Expand(config.Everywhere("{claude}/skills"))
	for _, dir := range users {
		groups = append(groups, c.skills(dir, false)...)
	}
	if dirs := c.r.Workspace(); len(dirs) > 0 { // of the directory itself, not of the repository
		if skills := c.r.Native(dirs[0] + "/.claude/skills"); !slices.Contains(users, skills) {
			groups = append(groups, c.skills(skills, true)...)
		}
	}
	return groups
}

// load reads a file about plugins.
func (c *claude) load(native string) config.Object {
	return c.r.Rule(claudeSource(config.PluginScope, native), true).Root
}

// installedAt returns where a plugin lies that is installed for the user, or for this project. An
// older form has one place only.
func (c *claude) installedAt(v config.Value) (root string) {
	places, isList := v.Array()
	if !isList {
		places = []config.Value{v}
	}
	for _, place := range places {
		o, _ := place.Object()
		project := o.Text("projectPath")
		if root == "" && (project == "" || c.r.Within(c.r.Clean(project))) {
			root = c.r.Clean(o.Text("installPath"))
		}
	}
	return root
}

// listedPlugin returns an installed plugin as its marketplace has it. Claude Code loads none that
// isn't listed in a marketplace it knows; where that is a directory of the user's, it takes the
// plugin from there rather than from where it was installed.
func (c *claude) listedPlugin(id, root string) plugin {
	p := plugin{id: id, root: root, off: config.Refuse("its plugin "+config.Display(id)+
		" is in no marketplace that Claude Code knows", "look at /plugin in Claude Code")}
	at := max(0, strings.LastIndexByte(id, '@'))
	p.name = id[:at]
	for _, file := range c.r.Expand(config.Everywhere("{claude}/plugins/known_marketplaces.json")) {
		known := c.load(file).Object(strings.TrimPrefix(id[at:], "@"))
		dir := c.r.Clean(known.Text("installLocation"))
		if dir == "" {
			continue
		}
		list, _ := c.load(c.r.Native(dir + "/.claude-plugin/marketplace.json")).Get("plugins").Array()
		for _, v := range list {
			o, _ := v.Object()
			if p.name == "" || o.Text("name") != p.name {
				continue
			}
			p.manifest, p.off = o, config.Refusal{}
			from, isPath := o.Get("source").Text() // else it is where it was installed
			if known.Object("source").Text("source") != "directory" || !isPath {
				return p
			}
			if p.root = path.Join(dir, from); !strings.HasPrefix(from, "./") || !c.r.Holds(dir, p.root) {
				p.root, p.off = root, config.Refuse("where its plugin "+config.Display(id)+
					" lies in its marketplace can't be told",
					"list the server in a file of MCP_BRIDGE_CONFIG")
			}
			return p
		}
	}
	return p
}

// skills reads the plugins among the skills of a directory: those that have a manifest.
func (c *claude) skills(dir string, ofProject bool) (groups []config.Group) {
	names, err := c.r.Names(dir)
	if bad := config.Unreadable(err, false); bad.Refused() {
		c.r.Problem(claudeSource(config.PluginScope, dir), "", bad.Reason, bad.Next)
	}
	for _, name := range names[:min(len(names), maxPlugins)] {
		root := c.r.Clean(dir) + "/" + name
		if c.r.IsFile(root + manifestFile) {
			groups = append(groups, c.plugin(plugin{id: name + skillsDir, name: name, root: root,
				ofProject: ofProject})...)
		}
	}
	return groups
}

// plugin reads the servers of one: those of its .mcp.json and of its manifest, of which the later
// count.
func (c *claude) plugin(p plugin) (groups []config.Group) {
	src := claudeSource(config.PluginScope, c.r.Native(p.root+manifestFile))
	switch f := c.r.Rule(src, true); {
	case f.There:
		p.manifest = f.Root
	case f.Broken:
		p.manifest, p.off = nil, config.Refuse("the manifest of its plugin "+config.Display(p.id)+
			" can't be read", "correct it, or install the plugin again")
	}
	if name := p.manifest.Text("name"); name != "" {
		p.name = name
	}
	data := strings.Map(func(r rune) rune {
		if config.InName(r) {
			return r
		}
		return '-'
	}, p.id)
	dataDir := strings.Join(c.r.Expand(config.Everywhere("{claude}/plugins/data/"+data)), "")
	shared := &config.Plugin{Off: c.pluginOff(p), OfProject: p.ofProject, Option: c.option(p),
		Variables: map[string]string{"CLAUDE_PLUGIN_ROOT": c.r.Native(p.root),
			"CLAUDE_PLUGIN_DATA": dataDir, config.ProjectDir: c.r.Env.Dir}}
	found := pluginServers{claude: c, root: p.root, files: map[string]bool{}}
	found.readFile("./.mcp.json")
	found.read(src, p.manifest.Get("mcpServers"))
	taken := map[string]bool{}
	for _, g := range slices.Backward(found.groups) {
		named := config.Object{}
		for _, m := range g.Entries {
			if !taken[m.Name] {
				named = append(named, config.Member{Name: "plugin:" + p.name + ":" + m.Name, Value: m.Value})
			}
		}
		for _, m := range g.Entries {
			taken[m.Name] = true
		}
		groups = append(groups, config.Group{Source: g.Source, Entries: named, Plugin: shared})
	}
	return groups
}

// pluginServers collects the servers of one plugin.
type pluginServers struct {
	*claude
	root   string
	files  map[string]bool // that were read
	groups []config.Group
}

// read takes what the manifest says: an object of servers, the name of a file, or a list of both.
func (s *pluginServers) read(src config.Source, v config.Value) {
	parts, isList := v.Array()
	if !isList {
		parts = []config.Value{v}
	}
	for _, part := range parts[:min(len(parts), maxPlugins)] {
		if o, ok := part.Object(); ok {
			s.groups = append(s.groups, config.Group{Source: src, Entries: o})
		}
		switch name, ok := part.Text(); {
		case !ok:
		case strings.HasSuffix(name, ".mcpb"), strings.HasSuffix(name, ".dxt"), strings.Contains(name, "://"):
			s.r.Refuse(src, "", config.Unusable, config.Refuse(
				"its mcpServers names a bundle, which Claude Code unpacks and the bridge doesn't",
				"list its servers in a file of MCP_BRIDGE_CONFIG"))
		default:
			s.readFile(name)
		}
	}
}

// readFile reads one of the plugin's files, whose servers may be under mcpServers or the whole of
// it.
func (s *pluginServers) readFile(name string) {
	file := path.Join(s.root, strings.ReplaceAll(name, `\`, "/"))
	src := claudeSource(config.PluginScope, s.r.Native(file))
	if !strings.HasPrefix(file, s.root+"/") {
		s.r.Problem(src, "", "a plugin's manifest names it, and it lies outside the plugin",
			"tell who made the plugin")
		return
	}
	if s.files[file] {
		return
	}
	s.files[file] = true
	root := s.load(src.Path)
	if v := root.Get("mcpServers"); !v.Is("nothing") {
		root, _ = v.Object()
	}
	s.groups = append(s.groups, config.Group{Source: src, Entries: root})
}

// readPlugins reads what one settings file says of plugins: which are enabled, and how they are
// configured. The settings of a project that isn't trusted may switch off, not on, and the
// administrator's count before all others.
func (c *claude) readPlugins(s config.Setting, by authority) {
	for _, m := range s.Rules.Object("enabledPlugins") {
		on := !m.Value.Is("false") && !m.Value.Absent() // a list is of versions
		before := c.plugins[m.Name]
		if before.by == ofAdministrator && by != ofAdministrator || on && (by == takesAway || !s.Standard) {
			continue
		}
		c.plugins[m.Name] = pluginSetting{on, s.Source, by}
	}
	if s.File.Approval != config.None {
		return // a project sets no options, trusted or not
	}
	for _, m := range s.Rules.Object("pluginConfigs") {
		if o, ok := m.Value.Object(); ok && s.Standard {
			// The administrator's came first.
			c.options[m.Name] = config.Merge(o.Object("options"), c.options[m.Name])
		}
	}
	for _, key := range []string{"strictKnownMarketplaces", "blockedMarketplaces"} {
		if by == ofAdministrator && !s.Rules.Get(key).Absent() {
			c.marketplaces = &s.Source
		}
	}
}

// pluginOff says why none of a plugin's servers is used, if so.
func (c *claude) pluginOff(p plugin) config.Refusal {
	skill := strings.HasSuffix(p.id, skillsDir)
	setting, said := c.plugins[p.id]
	if other, ok := c.plugins[p.name+skillsDir]; skill && ok && !other.on {
		setting, said = other, true // its directory may be called otherwise
	}
	const enable = "enable it with /plugin in Claude Code"
	switch {
	case p.off.Refused():
		return p.off
	case said && !setting.on:
		return config.Refuse("its plugin "+config.Display(p.id)+" is disabled in Claude Code, in "+
			setting.source.String(), enable)
	case !said && (!skill || p.manifest.Get("defaultEnabled").Is("false")):
		return config.Refuse("its plugin "+config.Display(p.id)+" is not enabled in Claude Code", enable)
	}
	return config.Refusal{}
}

// option returns a function for what a plugin's user has set, or else the plugin's own default.
// What is sensitive is kept elsewhere.
func (c *claude) option(p plugin) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		v := c.options[p.id].Get(name)
		if v.Is("nothing") {
			v = p.manifest.At("userConfig/" + name + "/default")
		}
		text, ok := v.Literal()
		return text, ok && !v.Absent()
	}
}
