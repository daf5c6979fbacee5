package discovery

import (
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// pluginScope is of servers that plugins of Claude Code bring along.
const pluginScope = "plugin"

// projectDir is the variable with which Claude Code tells the programs of plugins which project they are for.
const projectDir = "CLAUDE_PROJECT_DIR"

// maxPlugins is how many plugins are looked at, and how many skills; and how many parts of one plugin's manifest.
const maxPlugins = 300

// plugin is one of Claude Code's.
type plugin struct {
	id       string // name@marketplace, or name@skills-dir for one that lies among the skills
	name     string
	root     string // its directory, with slashes
	data     string // where it keeps what outlives a version, with slashes
	manifest *hujson.Object
	unlisted refusal // why Claude Code doesn't load it, if its marketplace is the reason
}

// readPlugins reads the servers of Claude Code's plugins: of those that are installed for the user or for this project, and of
// those that lie in a directory of skills.
func readPlugins(s *scan, r row) {
	for _, p := range s.places.expand(all("{claude}/plugins/installed_plugins.json")) {
		f := s.load(Source{claudeCode, pluginScope, p}, true, false)
		if f.root == nil {
			continue
		}
		members := slices.Clone(objectIn(f.root, "plugins").Members)
		slices.SortStableFunc(members, func(a, b hujson.ObjectMember) int { return strings.Compare(nameOf(a), nameOf(b)) })
		for _, m := range members[:min(len(members), maxPlugins)] {
			if root, ok := s.installedAt(&m.Value); ok {
				s.plugin(r, s.listedPlugin(nameOf(m), root))
			}
		}
	}
	for _, d := range s.places.expand(all("{claude}/skills")) {
		s.skills(r, d)
	}
	project := r
	project.form = r.form.with(func(f *form) { f.gate = unknown }) // its approvals are kept under names that nobody has written down
	if dirs := s.places.by["workspace"]; len(dirs) > 0 {           // of the directory itself, not of the repository
		skills := s.places.native(dirs[0] + "/.claude/skills")
		if !slices.Contains(s.places.expand(all("{claude}/skills")), skills) {
			s.skills(project, skills)
		}
	}
}

// installedAt is where a plugin lies that is installed for the user, or for this project. An older form has one place only.
func (s *scan) installedAt(v *hujson.Value) (root string, ok bool) {
	places := []hujson.Value{*v}
	if a, isList := arrayOf(v); isList {
		places = a.Elements
	}
	for i := range places {
		o, isObject := objectOf(&places[i])
		if !isObject {
			continue
		}
		project, _ := stringOf(get(o, "projectPath"))
		if project != "" && !s.places.within(s.places.clean(project)) {
			continue
		}
		at, _ := stringOf(get(o, "installPath"))
		if root := s.places.clean(at); root != "" {
			return root, true
		}
	}
	return "", false
}

// skills reads the plugins among the skills of a directory: those that have a manifest.
func (s *scan) skills(r row, dir string) {
	names, err := s.names(dir)
	if err != nil {
		if reason, next := unreadable(err, false); reason != "" {
			s.problem(Source{claudeCode, pluginScope, dir}, "", reason, next)
		}
		return
	}
	for _, name := range names[:min(len(names), maxPlugins)] {
		root := s.places.clean(dir) + "/" + name
		if info, err := s.stat(root + manifestFile); err == nil && info.Mode().IsRegular() {
			s.plugin(r, plugin{id: name + skillsDir, name: name, root: root})
		}
	}
}

const (
	manifestFile = "/.claude-plugin/plugin.json"
	skillsDir    = "@skills-dir" // in the place of a marketplace
)

// plugin reads the servers of one.
func (s *scan) plugin(r row, p plugin) {
	s.places.by["plugins"] = append(s.places.by["plugins"], p.root)
	src := Source{claudeCode, pluginScope, s.places.native(p.root + manifestFile)}
	switch f := s.load(src, true, false); {
	case f.root != nil:
		p.manifest = f.root
	case f.broken:
		p.manifest, p.unlisted = nil, refusal{"the manifest of its plugin " + display(p.id) + " can't be read", "correct it, or install the plugin again"}
	}
	if p.manifest == nil {
		p.manifest = &hujson.Object{}
	}
	if name, _ := stringOf(get(p.manifest, "name")); name != "" {
		p.name = name
	}
	for _, d := range s.places.by["claude"] {
		p.data = d + "/plugins/data/" + dashed(p.id)
	}
	r.form = r.form.with(func(f *form) {
		f.off = s.claude.pluginOff(p)
		f.option = s.claude.option(p)
		f.given = map[string]string{"CLAUDE_PLUGIN_ROOT": s.places.native(p.root), "CLAUDE_PLUGIN_DATA": s.places.native(p.data), projectDir: s.env.Dir}
	})
	c := pluginServers{scan: s, plugin: p, files: map[string]bool{}}
	c.file("./.mcp.json")
	c.said(src, get(p.manifest, "mcpServers"))
	taken := map[string]bool{}
	for _, g := range slices.Backward(c.groups) { // what comes later counts
		s.entries(r, g.source, servers{entries: p.named(g.entries, taken)})
	}
}

// named is the entries under the names that Claude Code gives a plugin's servers, without those whose names are taken.
func (p plugin) named(o *hujson.Object, taken map[string]bool) *hujson.Object {
	all := &hujson.Object{}
	for _, m := range o.Members {
		name := "plugin:" + p.name + ":" + nameOf(m)
		if !taken[name] {
			m.Name = hujson.Value{Value: hujson.String(name)}
			all.Members = append(all.Members, m)
		}
	}
	for _, m := range all.Members {
		taken[nameOf(m)] = true
	}
	return all
}

// pluginServers collects the servers of one plugin.
type pluginServers struct {
	scan   *scan
	plugin plugin
	files  map[string]bool // that were read
	groups []pluginGroup
}

type pluginGroup struct {
	source  Source
	entries *hujson.Object
}

// said takes what the manifest says: an object of servers, the name of a file, or a list of both.
func (c *pluginServers) said(src Source, v *hujson.Value) {
	if a, ok := arrayOf(v); ok {
		for i := range a.Elements[:min(len(a.Elements), maxPlugins)] {
			if _, nested := arrayOf(&a.Elements[i]); !nested {
				c.said(src, &a.Elements[i])
			}
		}
		return
	}
	if o, ok := objectOf(v); ok {
		c.groups = append(c.groups, pluginGroup{src, o})
		return
	}
	name, ok := stringOf(v)
	switch {
	case !ok:
	case strings.HasSuffix(name, ".mcpb"), strings.HasSuffix(name, ".dxt"), strings.Contains(name, "://"):
		c.scan.refuse(src, "", Unusable, refusal{"its mcpServers names a bundle, which Claude Code unpacks and the bridge doesn't", "list its servers in a file of MCP_BRIDGE_CONFIG"})
	default:
		c.file(name)
	}
}

// file reads one of the plugin's files, whose servers may be under mcpServers or the whole of it.
func (c *pluginServers) file(name string) {
	s := c.scan
	file := path.Join(c.plugin.root, strings.ReplaceAll(name, `\`, "/"))
	src := Source{claudeCode, pluginScope, s.places.native(file)}
	if !strings.HasPrefix(file, c.plugin.root+"/") {
		s.problem(src, "", "a plugin's manifest names it, and it lies outside the plugin", "tell who made the plugin")
		return
	}
	if c.files[file] {
		return
	}
	c.files[file] = true
	f := s.load(src, true, false)
	if f.root == nil {
		return
	}
	o := f.root
	if v := get(f.root, "mcpServers"); v != nil {
		o, _ = objectOf(v)
	}
	if o != nil {
		c.groups = append(c.groups, pluginGroup{src, o})
	}
}

// dashed is a plugin's id as a file name of Claude Code's.
func dashed(id string) string {
	return strings.Map(func(r rune) rune {
		if inName(r) {
			return r
		}
		return '-'
	}, id)
}
