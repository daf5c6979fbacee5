package hosts

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// toolSearch is what announces tools where Claude Code's tool search is on, as it is unless its
// user switches it off. test/hosts compares it with what the program sends.
//
//go:embed tool-search.txt
var toolSearch string

var claudeCode = &config.Host{
	Name: "Claude Code", Format: claudeFormat,
	Dirs: []config.Dir{
		{Name: "claude", Var: "CLAUDE_CONFIG_DIR", Else: config.Everywhere("{home}/.claude")},
		{Name: "claude.json", Var: "CLAUDE_CONFIG_DIR", Then: ".claude.json",
			Else: config.Everywhere("{home}/.claude.json")},
	},
	Files: []config.File{
		{Scope: "managed", Paths: claudeManaged("managed-mcp.json")},
		{Scope: config.LocalScope, Paths: claudeJSON, Elsewhere: true},
		{Scope: "project", Paths: config.Everywhere("{up}/.mcp.json"), Approval: config.ByRules,
			Format: claudeFormat.With(func(f *config.Format) { f.Foreign = "servers" })},
		{Scope: "user", Paths: claudeJSON},
		{Scope: config.PluginScope, Elsewhere: true,
			Format: claudeFormat.With(func(f *config.Format) { f.References = config.Options })},
	},
	Settings: claudeSettings,
	Install: &config.Install{
		ID: "claude-code", Program: "claude", Marks: config.Everywhere("{claude}", "{claude.json}"),
		User: []string{"user"}, Project: "project", Entry: stdioType,
		Allow: []config.Preference{{Paths: config.Everywhere("{claude}/settings.json"),
			Path: []string{"permissions", "allow"}, Value: config.Of("mcp__" + config.Own), Add: true}},
		Command: []string{"claude", "mcp", "add", "--scope", "user", config.Own, "-e", "{env}", "--",
			"{command}"},
		Next: "start a new session; /mcp shows the bridge",
		Sent: config.Sent{Search: toolSearch, SearchOff: "ENABLE_TOOL_SEARCH=false"},
	},
	Rules: func(r *config.Reader) config.Rules {
		c := newClaude(r)
		rules := config.Rules{Denied: c.denied, Approved: c.approved, Tools: c.toolRules, Groups: c.groups,
			Denying: c.denying()}
		rules.Off = func(name string) (by config.Source, off bool) {
			by, off = c.disabled[name]
			return by, off
		}
		if r.Env.Getenv("CLAUDECODE") != "" { // where it runs the bridge, that must not be the way around it
			rules.DeniedOthers = func(e *config.Entry) config.Refusal { return c.withheld(e, false) }
		}
		return rules
	},
}

// claudeFormat heeds neither disabled nor cwd, as Claude Code does not.
var claudeFormat = &config.Format{
	Key: "mcpServers", Strict: true, References: config.Braces,
	Program: config.Program{Command: "command", Env: "env"},
	Remote: config.Remote{
		URLs: []config.URLKey{{Key: "url", Transport: config.HTTP}}, Headers: "headers",
		OAuth: config.OAuthKeys{Key: "oauth", ClientID: "clientId", Scopes: "scopes", Port: "callbackPort",
			Metadata: "authServerMetadataUrl"},
	},
	Prepare: config.NeedsType("Claude Code"),
	Finish: func(e *config.Entry, m *config.Members) {
		if e.Transport != config.Stdio {
			e.HeadersHelper = m.Text("headersHelper")
		}
	},
}

// claudeNames are names that Claude Code keeps for servers of its own and skips elsewhere.
var claudeNames = []string{"workspace", "claude-in-chrome", "computer-use", "Claude Preview",
	"Claude Browser"}

const (
	askAdministrator = "ask the administrator"
	trustIt          = "start claude in this directory and trust it"
)

func (c *claude) denied(e *config.Entry) config.Refusal {
	managed, plugin := e.Source.Scope == "managed", e.Source.Scope == config.PluginScope
	if bad := c.withheld(e, managed); bad.Refused() {
		return bad
	}
	switch {
	case slices.Contains(claudeNames, e.Name):
		return config.Refuse("Claude Code keeps this name for a server of its own and skips it",
			"give it another name")
	case plugin && c.marketplaces != nil:
		return config.Refuse("Claude Code's administrator limits where plugins come from, in "+
			c.marketplaces.String()+", and where this one does can't be told", askAdministrator)
	case !plugin && !managed && c.pluginsOnly != nil:
		return config.Refuse("Claude Code's administrator allows only servers of plugins, in "+
			c.pluginsOnly.String(), askAdministrator)
	}
	return config.Refusal{}
}

// withheld refuses what the settings keep back of any host's servers. The allow list isn't for
// those of the administrator.
func (c *claude) withheld(e *config.Entry, managed bool) config.Refusal {
	switch {
	case c.unclear.Refused():
		return c.unclear
	case c.exclusive != nil && !managed:
		return config.Refuse("Claude Code's administrator allows only the servers of "+c.exclusive.String(),
			askAdministrator)
	}
	for _, r := range c.denials {
		if r.name == e.Name || r.meets(e, c.r.Env.Getenv) {
			return config.Refuse("Claude Code's settings deny it, in "+r.source.String(),
				"take it out of deniedMcpServers there to use it")
		}
	}
	if c.allowedIn == nil || managed || c.allows(e) {
		return config.Refusal{}
	}
	return config.Refuse("Claude Code's settings don't allow it: it is not in allowedMcpServers of "+
		c.allowedIn.String(), "add it there to use it")
}

// denying returns the files that withheld goes by. Where there is an allow list, any file of
// settings may add to it.
func (c *claude) denying() (files []string) {
	if c.allowedIn != nil {
		return c.r.RuleFiles("Claude Code")
	}
	for _, d := range c.denials {
		files = append(files, d.source.Path)
	}
	return files
}

// allows reports whether the allow list has a server. Names count only while the list has no rule
// for what the server is, and not for plugins' servers.
func (c *claude) allows(e *config.Entry) bool {
	byKind := slices.ContainsFunc(c.allowed, func(r claudeRule) bool {
		return e.Transport == config.Stdio && r.command != nil || e.Transport != config.Stdio && r.url != ""
	})
	return slices.ContainsFunc(c.allowed, func(r claudeRule) bool {
		if byKind {
			return r.meets(e, c.r.Env.Getenv)
		}
		return r.name != "" && r.name == e.Name && e.Source.Scope != config.PluginScope
	})
}

// meets reports whether a rule is about the command line or the URL of a server, as it is written
// or as it is filled in.
func (r claudeRule) meets(e *config.Entry, getenv func(string) string) bool {
	if e.Transport != config.Stdio {
		return r.url != "" && (wildcard(r.url, e.URL) || wildcard(r.url, e.WrittenURL))
	}
	expanded := slices.Clone(r.command)
	for i := range expanded {
		expanded[i] = config.ExpandBraces(expanded[i], getenv)
	}
	for _, words := range [][]string{append([]string{e.Command}, e.Args...), e.Argv} {
		if r.command != nil && (slices.Equal(r.command, words) || slices.Equal(expanded, words)) {
			return true
		}
	}
	return false
}

// approved refuses a server of a project's .mcp.json without the user's yes, and whatever would run
// a command of a project that isn't trusted.
func (c *claude) approved(e *config.Entry) config.Refusal {
	trusted := len(c.trusted) > 0
	switch e.Source.Scope {
	case "project":
		if bad := c.approval(e); bad.Refused() {
			return bad
		}
		trusted = c.trusts(c.r.ProjectOf(e.Source.Path))
	case config.LocalScope:
	case config.PluginScope: // a plugin knows no project
		for what, text := range map[string]string{"command": e.Command, "headersHelper": e.HeadersHelper} {
			if !trusted && strings.Contains(text, config.ProjectDir) {
				return config.Refuse("its "+what+" is of whatever project the bridge runs in, and this one "+
					"is not yet trusted in Claude Code", trustIt)
			}
		}
		if e.Plugin.OfProject { // the approvals of such a plugin are kept under names that can't be known
			return config.AsksFirst("Claude Code")
		}
		return config.Refusal{}
	default:
		return config.Refusal{}
	}
	if e.HeadersHelper != "" && !trusted {
		return config.Refuse("its headersHelper is a command, and this project is not yet trusted in "+
			"Claude Code", trustIt)
	}
	return config.Refusal{}
}

// approval refuses a server of .mcp.json without the user's yes to it. Only ~/.claude.json, by its
// entry for this project, can say yes by itself: a name alone says nothing of a repository, where
// any server could have it, so that the user has to trust the project too. No word about a project
// is one about the directories above it.
func (c *claude) approval(e *config.Entry) config.Refusal {
	dir := c.r.ProjectOf(e.Source.Path)
	trusted, here, anywhere := c.trusts(dir), c.here.has(e.Name), c.anywhere.has(e.Name)
	if by, ok := c.rejected[config.ToolName(e.Name)]; ok {
		return config.Refuse("it was rejected in Claude Code, in "+by.String(),
			"take it out of disabledMcpjsonServers there to use it")
	}
	switch {
	case trusted && (here || anywhere), here && c.r.Holds(c.projectDir, dir):
		return config.Refusal{}
	case here || anywhere:
		return config.Refuse("it is approved in Claude Code, but "+c.r.Folder(dir, "this project")+
			" is not yet trusted there", "start claude in "+c.r.Folder(dir, "this directory")+
			" and trust it, or "+config.ListIt)
	}
	return config.Refuse("it is not yet approved in Claude Code",
		"start claude in this directory, trust it and approve the server")
}

func (c *claude) toolRules(e *config.Entry) []config.RuleList {
	if len(c.tools) == 0 {
		return nil
	}
	return []config.RuleList{{Prefix: "mcp__" + config.ToolName(e.Name) + "__", Rules: c.tools}}
}
