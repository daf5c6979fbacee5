package hosts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var claudeJSON = config.Everywhere("{claude.json}")

// claudeManaged returns the paths of a file of Claude Code's administrator.
func claudeManaged(file string) config.Paths {
	return config.PerSystem("/etc/claude-code/"+file, "/Library/Application Support/ClaudeCode/"+file,
		"C:/Program Files/ClaudeCode/"+file)
}

// claudeSettings are read in this order. Those in a project that isn't trusted may take away, not
// give.
var claudeSettings = []config.File{
	{Scope: "managed settings", Paths: claudeManaged("managed-settings.json")},
	{Scope: "managed settings", Paths: claudeManaged("managed-settings.d/*.json")},
	{Scope: "user settings", Paths: config.Everywhere("{claude}/settings.json")},
	{Scope: "project settings", Paths: config.Everywhere("{workspace}/.claude/settings.json"),
		Approval: config.ByRules},
	{Scope: "local settings", Paths: config.Everywhere("{workspace}/.claude/settings.local.json"),
		Approval: config.ByRules},
}

// claude is what Claude Code's settings and ~/.claude.json say of servers.
type claude struct {
	r            *config.Reader
	unclear      config.Refusal // the administrator's rules can't be read
	exclusive    *config.Source // managed-mcp.json: only its servers
	pluginsOnly  *config.Source // strictPluginOnlyCustomization
	marketplaces *config.Source // the administrator's rules about where plugins come from

	denials     []claudeRule
	allowed     []claudeRule
	allowedIn   *config.Source // where allowedMcpServers is; nil means that everything is allowed
	managedOnly bool           // only the administrator's allowedMcpServers counts

	disabled map[string]config.Source // servers switched off for this project
	rejected map[string]config.Source // servers of .mcp.json, as ToolName has them
	anywhere approvals                // by settings, which count in a trusted project only
	here     approvals                // by this project's own entry of ~/.claude.json
	trusted  []string                 // folders that the working directory is in

	plugins map[string]pluginSetting // by id
	options map[string]config.Object // of plugins, by id
	tools   []config.ToolRule        // that are denied, by their names in Claude Code

	project    config.Object // what ~/.claude.json says about this project
	projectDir string        // the directory that it says it of; empty for none
	projectIn  config.Source
}

// approvals are servers of .mcp.json that the user has said yes to.
type approvals struct {
	names map[string]bool
	all   bool // enableAllProjectMcpServers
}

func (a approvals) has(name string) bool { return a.all || a.names[name] }

// claudeRule is one entry of allowedMcpServers or deniedMcpServers: exactly one of its matches is
// set.
type claudeRule struct {
	source  config.Source
	name    string
	command []string
	url     string // a pattern, in which * stands for anything
}

// authority is how far a settings file is believed.
type authority int

const (
	takesAway authority = iota // other users may have written it
	ofUser
	ofAdministrator
)

func newClaude(r *config.Reader) *claude {
	c := &claude{
		r: r, disabled: map[string]config.Source{}, rejected: map[string]config.Source{},
		anywhere: approvals{names: map[string]bool{}}, plugins: map[string]pluginSetting{},
		options: map[string]config.Object{},
	}
	for _, p := range r.Expand(claudeManaged("managed-mcp.json")) {
		src := claudeSource("managed", p)
		if f := r.Rule(src, true); f.There {
			c.exclusive = &src
		} else if f.Broken {
			c.unclear = config.Unclear("Claude Code", src)
		}
	}
	c.readProjects()
	for _, s := range r.Settings("Claude Code", claudeSettings) {
		inProject := s.File.Approval != config.None
		switch {
		case inProject && r.UsersOwn(claudeSettings, s.Source.Path): // read already
		case s.File.Scope == "managed settings":
			if s.Broken {
				c.unclear = config.Unclear("Claude Code", s.Source)
			}
			c.read(s, ofAdministrator)
		case inProject && !c.trusts(r.ProjectOf(s.Source.Path)):
			c.read(s, takesAway)
		default:
			c.read(s, ofUser)
		}
	}
	return c
}

func claudeSource(scope, path string) config.Source {
	return config.Source{Host: "Claude Code", Scope: scope, Path: path}
}

// readProjects reads what ~/.claude.json says of this project: under the root of its repository,
// then under the working directory; and which folders the user has trusted, of those that the
// working directory is in. Where others could have written the file, it may only take away.
func (c *claude) readProjects() {
	for _, p := range c.r.Expand(claudeJSON) {
		c.projectIn = claudeSource("user", p)
		f := c.r.Rule(c.projectIn, true)
		v := f.Rules.Get("projects")
		projects, ok := v.Object()
		if !ok && !v.Absent() {
			c.r.Problem(c.projectIn, "", `its "projects" is `+v.Kind()+", not an object", "correct it")
		}
		for _, dir := range slices.Backward(c.r.Workspace()) {
			o, ok := c.r.Under(projects, dir)
			yes := c.readApprovals(c.projectIn, o)
			if ok && !f.Exposed && c.projectDir == "" {
				c.project, c.projectDir, c.here = o, dir, yes
			}
			for _, name := range c.r.Strings(c.projectIn, o, "disabledMcpServers") {
				c.disabled[name] = c.projectIn
			}
		}
		for _, dir := range c.r.Up() {
			if o, _ := c.r.Under(projects, dir); o.Get("hasTrustDialogAccepted").Is("true") && !f.Exposed {
				c.trusted = append(c.trusted, dir)
			}
		}
	}
}

// trusts reports whether a directory is one that the user has trusted, or lies in one.
func (c *claude) trusts(dir string) bool {
	return slices.ContainsFunc(c.trusted, func(folder string) bool { return c.r.Holds(folder, dir) })
}

// read reads one settings file. What a file with comments gives is not taken, as Claude Code may
// reject such a file; what it takes away is.
func (c *claude) read(s config.Setting, by authority) {
	if s.Exposed {
		by = takesAway
	}
	src, admin := s.Source, by == ofAdministrator
	gives := admin || by == ofUser && s.Standard
	c.denials = append(c.denials, c.readRules(s, admin, "deniedMcpServers")...)
	if !s.Rules.Get("allowedMcpServers").Absent() && (admin || !c.managedOnly) {
		if c.allowedIn == nil {
			c.allowedIn = &src
		}
		if rules := c.readRules(s, false, "allowedMcpServers"); gives {
			c.allowed = append(c.allowed, rules...)
		}
	}
	if admin {
		c.managedOnly = c.managedOnly || s.Rules.Get("allowManagedMcpServersOnly").Is("true")
		const key = "strictPluginOnlyCustomization"
		if v := s.Rules.Get(key); v.Is("true") || v.Is("an array") &&
			slices.Contains(c.r.Strings(src, s.Rules, key), "mcp") {
			c.pluginsOnly = &src
		}
	}
	c.readPlugins(s, by)
	for _, name := range c.r.Strings(src, s.Rules.Object("permissions"), "deny") {
		if strings.HasPrefix(name, "mcp__") && !strings.Contains(name, "(") { // else it is about arguments
			c.tools = append(c.tools, config.ToolRule{Pattern: name, Deny: true, From: src},
				config.ToolRule{Pattern: name + "__*", Deny: true, From: src})
		}
	}
	c.tools = c.r.Bounded(src, c.tools)
	if yes := c.readApprovals(src, s.Rules); by != takesAway && s.Standard {
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

// readRules reads a list of rules. Where an administrator's is no list, it isn't clear what it
// forbids.
func (c *claude) readRules(s config.Setting, admin bool, key string) (rules []claudeRule) {
	v := s.Rules.Get(key)
	list, ok := v.Array()
	if !ok && !v.Absent() {
		c.r.Problem(s.Source, "", `its "`+key+`" is `+v.Kind()+", not an array", "correct it")
		if admin {
			c.unclear = config.Unclear("Claude Code", s.Source)
		}
	}
	for i, v := range list {
		o, _ := v.Object()
		rule := claudeRule{source: s.Source, name: o.Text("serverName")}
		if command, ok := o.Get("serverCommand").Strings(); ok && rule.name == "" && len(command) > 0 {
			rule.command = command
		}
		if rule.name == "" && rule.command == nil {
			rule.url = o.Text("serverUrl")
		}
		if rule.name == "" && rule.command == nil && rule.url == "" {
			c.r.Problem(s.Source, "", fmt.Sprintf(`entry %d of its "%s" is not understood`, i+1, key),
				"give it exactly one of serverName, serverCommand and serverUrl")
			continue
		}
		rules = append(rules, rule)
	}
	return rules
}
