package hosts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// claude is what Claude Code's settings and ~/.claude.json say of servers.
type claude struct {
	r            *config.Reader
	unreadable   *config.Source // rules of an administrator
	exclusive    *config.Source // managed-mcp.json: only its servers
	pluginsOnly  *config.Source // strictPluginOnlyCustomization
	marketplaces *config.Source // the administrator's rules about where plugins come from

	denials     []serverRule
	allowed     []serverRule
	allowedIn   *config.Source // where allowedMcpServers is; nil means that everything is allowed
	managedOnly bool           // only the administrator's allowedMcpServers counts

	disabled map[string]config.Source // servers switched off for this project
	rejected map[string]config.Source // servers of .mcp.json, as ToolName has them
	anywhere approvals                // by settings, which count in a trusted project only
	here     approvals                // by this project's own entry of ~/.claude.json
	trusted  []string                 // folders that the working directory is in

	plugins       map[string]pluginSetting // by id
	pluginOptions map[string]config.Object // by id
	tools         []config.ToolRule        // that are denied, by their names in Claude Code

	projects   []claudeProject // what ~/.claude.json says about this project, what counts first
	projectsIn config.Source
}

// claudeProject is what ~/.claude.json says about the project in a directory.
type claudeProject struct {
	dir   string
	entry config.Object
}

// approvals are servers of .mcp.json that the user has said yes to.
type approvals struct {
	names map[string]bool
	all   bool // enableAllProjectMcpServers
}

func (a approvals) has(name string) bool { return a.all || a.names[name] }

// serverRule is one entry of allowedMcpServers or deniedMcpServers: exactly one of its matches is
// set.
type serverRule struct {
	source  config.Source
	name    string
	command []string
	url     string // a pattern, in which * stands for anything
}

// authority is how far a settings file is believed.
type authority int

const (
	ofUntrusted authority = iota // it lies in a project that isn't trusted: it may take away, not give
	ofUser                       // the user's own
	ofAdministrator
)

func newClaude(r *config.Reader) *claude {
	c := &claude{
		r: r, disabled: map[string]config.Source{}, rejected: map[string]config.Source{},
		anywhere: approvals{names: map[string]bool{}}, plugins: map[string]pluginSetting{},
		pluginOptions: map[string]config.Object{},
	}
	c.readManaged()
	seen := map[string]bool{}
	for _, p := range r.Expand(config.Everywhere("{claude}/settings.json")) {
		seen[p] = true
		c.read(c.source("user settings", p), ofUser)
	}
	known, exposed := c.readProjects()
	for _, name := range []string{"project", "local"} {
		file := map[string]string{"project": "settings.json", "local": "settings.local.json"}[name]
		for _, p := range r.Expand(config.Everywhere("{workspace}/.claude/" + file)) {
			by := ofUntrusted
			if c.trusts(r.ProjectOf(p)) {
				by = ofUser
			}
			if !seen[p] {
				c.read(c.source(name+" settings", p), by)
			}
		}
	}
	for i, p := range known {
		if yes := c.readApprovals(c.projectsIn, p.entry); i == 0 && !exposed {
			c.here = yes
		}
		for _, name := range r.Strings(c.projectsIn, p.entry, "disabledMcpServers") {
			c.disabled[name] = c.projectsIn
		}
	}
	if !exposed {
		c.projects = known
	}
	return c
}

func (c *claude) source(scope, path string) config.Source {
	return config.Source{Host: "Claude Code", Scope: scope, Path: path}
}

// readManaged reads the administrator's files.
func (c *claude) readManaged() {
	for _, p := range c.r.Expand(claudeManaged("managed-mcp.json")) {
		src := c.source("managed", p)
		if f := c.r.Rule(src, true); f.There {
			c.exclusive = &src
		} else if f.Broken {
			c.unreadable = &src
		}
	}
	for _, p := range c.r.Expand(claudeManaged("managed-settings.json")) {
		c.read(c.source("managed settings", p), ofAdministrator)
	}
	for _, dir := range c.r.Expand(claudeManaged("managed-settings.d")) {
		src := c.source("managed settings", dir)
		before := len(c.r.Problems)
		names, _ := c.r.Files(src, ".json", false)
		if len(c.r.Problems) > before {
			c.unreadable = &src
		}
		for _, name := range names {
			c.read(c.source("managed settings", c.r.Join(dir, name)), ofAdministrator)
		}
	}
}

// readProjects reads what ~/.claude.json says of this project: under the root of its repository,
// then under the working directory; and which folders the user has trusted, of those that the
// working directory is in. Where others could have written the file, it may only take away.
func (c *claude) readProjects() (known []claudeProject, exposed bool) {
	for _, p := range c.r.Expand(claudeJSON) {
		c.projectsIn = c.source("user", p)
		f := c.r.Rule(c.projectsIn, true)
		v := f.Rules.Get("projects")
		projects, ok := v.Object()
		if !ok && !v.Absent() {
			c.r.Problem(c.projectsIn, "", `its "projects" is `+v.Kind()+", not an object", "correct it")
		}
		for _, dir := range slices.Backward(c.r.Workspace()) {
			if o, ok := c.r.Under(projects, dir); ok {
				known = append(known, claudeProject{dir, o})
			}
		}
		for _, dir := range c.r.Up() {
			if o, _ := c.r.Under(projects, dir); o.Get("hasTrustDialogAccepted").Is("true") && !f.Exposed {
				c.trusted = append(c.trusted, dir)
			}
		}
		exposed = f.Exposed
	}
	return known, exposed
}

// trusts reports whether a directory is one that the user has trusted, or lies in one.
func (c *claude) trusts(dir string) bool {
	return slices.ContainsFunc(c.trusted, func(folder string) bool { return c.r.Holds(folder, dir) })
}

// read reads one settings file. What a file with comments gives is not taken, as Claude Code may
// reject such a file; what it takes away is.
func (c *claude) read(src config.Source, by authority) {
	f := c.r.Rule(src, false)
	if f.Broken && by == ofAdministrator {
		c.unreadable = &src
	}
	if f.Rules == nil {
		return
	}
	if f.Exposed {
		by = ofUntrusted
	}
	denials, ok := c.readRules(src, f.Rules, "deniedMcpServers")
	c.denials = append(c.denials, denials...)
	if !ok && by == ofAdministrator {
		c.unreadable = &src
	}
	if !f.Rules.Get("allowedMcpServers").Absent() && (by == ofAdministrator || !c.managedOnly) {
		if c.allowedIn == nil {
			c.allowedIn = &src
		}
		allowed, _ := c.readRules(src, f.Rules, "allowedMcpServers")
		if by == ofAdministrator || by == ofUser && f.Standard {
			c.allowed = append(c.allowed, allowed...)
		}
	}
	if by == ofAdministrator {
		c.managedOnly = c.managedOnly || f.Rules.Get("allowManagedMcpServersOnly").Is("true")
		const key = "strictPluginOnlyCustomization"
		if v := f.Rules.Get(key); v.Is("true") || v.Is("an array") &&
			slices.Contains(c.r.Strings(src, f.Rules, key), "mcp") {
			c.pluginsOnly = &src
		}
	}
	c.readPlugins(src, f, by)
	c.readTools(src, f.Rules)
	if yes := c.readApprovals(src, f.Rules); by != ofUntrusted && f.Standard {
		c.anywhere.all = c.anywhere.all || yes.all
		maps.Copy(c.anywhere.names, yes.names)
	}
}

// readApprovals reads the user's answers about the servers of .mcp.json. It notes what is rejected,
// and leaves it to the caller whether what is approved counts.
func (c *claude) readApprovals(src config.Source, o config.Object) approvals {
	for _, name := range c.r.Strings(src, o, "disabledMcpjsonServers") {
		if _, ok := c.rejected[config.ToolName(name)]; !ok {
			c.rejected[config.ToolName(name)] = src
		}
	}
	yes := approvals{map[string]bool{}, o.Get("enableAllProjectMcpServers").Is("true")}
	for _, name := range c.r.Strings(src, o, "enabledMcpjsonServers") {
		yes.names[name] = true
	}
	return yes
}

// readRules reads a list of rules; false if it is no list.
func (c *claude) readRules(src config.Source, o config.Object, key string) (rules []serverRule, ok bool) {
	v := o.Get(key)
	list, ok := v.Array()
	if !ok && !v.Absent() {
		c.r.Problem(src, "", `its "`+key+`" is `+v.Kind()+", not an array", "correct it")
		return nil, false
	}
	for i, v := range list {
		o, _ := v.Object()
		r := serverRule{source: src, name: o.Text("serverName")}
		if command, ok := o.Get("serverCommand").Strings(); ok && r.name == "" && len(command) > 0 {
			r.command = command
		}
		if r.name == "" && r.command == nil {
			r.url = o.Text("serverUrl")
		}
		if r.name == "" && r.command == nil && r.url == "" {
			c.r.Problem(src, "", fmt.Sprintf(`entry %d of its "%s" is not understood`, i+1, key),
				"give it exactly one of serverName, serverCommand and serverUrl")
			continue
		}
		rules = append(rules, r)
	}
	return rules, true
}

// readTools reads which tools of servers a settings file denies. A rule about arguments is none
// about a tool.
func (c *claude) readTools(src config.Source, root config.Object) {
	for _, name := range c.r.Strings(src, root.Object("permissions"), "deny") {
		if strings.HasPrefix(name, "mcp__") && !strings.Contains(name, "(") {
			c.tools = append(c.tools, config.ToolRule{Pattern: name, Deny: true, From: src},
				config.ToolRule{Pattern: name + "__*", Deny: true, From: src})
		}
	}
	if len(c.tools) > config.MaxRules {
		c.r.Problem(src, "", fmt.Sprintf("with it there are more than %d rules about tools; all tools of "+
			"Claude Code's servers are hidden",
			config.MaxRules), "take out what isn't needed")
		c.tools = []config.ToolRule{{Pattern: "*", Deny: true, From: src}}
	}
}

func (c *claude) toolRules(e *config.Entry) []config.RuleList {
	if len(c.tools) == 0 {
		return nil
	}
	return []config.RuleList{{Prefix: "mcp__" + config.ToolName(e.Name) + "__", Rules: c.tools}}
}
