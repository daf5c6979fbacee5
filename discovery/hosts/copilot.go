package hosts

import (
	"slices"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var copilot = &config.Host{
	Name: "Copilot CLI", Format: copilotFormat,
	Dirs: []config.Dir{{Name: "copilot", Var: "COPILOT_HOME", Else: config.Everywhere("{home}/.copilot")}},
	Files: []config.File{
		{Scope: "workspace", Paths: config.Everywhere("{workspace}/.github/mcp.json"),
			Approval: config.ByRules},
		{Scope: "repository", Approval: config.ByRules},
		{Scope: "user", Paths: config.Everywhere("{copilot}/mcp-config.json")},
	},
	Install: &config.Install{
		ID: "copilot-cli", Program: "copilot", User: []string{"user"}, Project: "workspace",
		Entry: config.Object{{Name: "type", Value: config.Of("local")},
			{Name: "tools", Value: config.Of([]string{"*"})}},
		Command: []string{"copilot", "mcp", "add", config.Own, "--env", "{env}", "--", "{command}"},
		Next: "/mcp show lists the bridge; Copilot CLI asks before it calls a tool, unless it is " +
			"started with --allow-tool '" + config.Own + "'",
	},
	Rules: func(r *config.Reader) config.Rules {
		c := copilotRules{r, r.Settings("Copilot CLI", copilotSettings)}
		approved := r.TrustedOnly("Copilot CLI", "copilot", c.trusts)
		return config.Rules{Off: c.off, Approved: approved, Paths: c.repository}
	},
}

// copilotSettings are the files in which Copilot CLI keeps what its user has said.
var copilotSettings = []config.File{
	{Scope: "settings", Paths: config.Everywhere("{copilot}/settings.json", "{copilot}/config.json")},
}

var copilotFormat = config.Plain(func(f *config.Format) {
	f.Foreign, f.References, f.Tools.Allow = "", config.Braces, "tools"
})

type copilotRules struct {
	r        *config.Reader
	settings []config.Setting
}

// trusts reports whether a directory is a folder that the user has trusted, or lies in one.
func (c copilotRules) trusts(dir string) bool {
	for _, s := range c.settings {
		for _, key := range []string{"trusted_folders", "trustedFolders"} { // the older and the newer name
			for _, folder := range c.r.Strings(s.Source, s.Root, key) {
				if c.r.Holds(c.r.Clean(folder), dir) {
					return true
				}
			}
		}
	}
	return false
}

func (c copilotRules) off(name string) (by config.Source, off bool) {
	for _, s := range c.settings {
		if slices.Contains(c.r.Strings(s.Source, s.Rules, "disabledMcpServers"), name) {
			by, off = s.Source, true
		}
	}
	return by, off
}

// repository returns the .mcp.json of a project that is trusted in Copilot CLI. Elsewhere the file
// is Claude Code's alone, and listed there.
func (c copilotRules) repository(scope string) (paths []string) {
	if scope != "repository" {
		return nil
	}
	for _, p := range c.r.Expand(config.Everywhere("{workspace}/.mcp.json")) {
		if !c.r.Listed[p] && c.trusts(c.r.ProjectOf(p)) {
			paths = append(paths, p)
		}
	}
	return paths
}
