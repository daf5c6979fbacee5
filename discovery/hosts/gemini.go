package hosts

import (
	"path"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var gemini = &config.Host{
	Name: "Gemini CLI", Format: geminiFormat,
	Dirs: append([]config.Dir{
		{Name: "gemini", Var: "GEMINI_CLI_HOME", Then: ".gemini", Else: config.Everywhere("{home}/.gemini")},
		{Name: "gemini trust", Var: "GEMINI_CLI_TRUSTED_FOLDERS_PATH",
			Else: config.Everywhere("{gemini}/trustedFolders.json")},
	}, geminiSystem("gemini", "GEMINI_CLI", "gemini-cli", "GeminiCli")...),
	Files: geminiFiles,
	Install: &config.Install{
		ID: "gemini-cli", Program: "gemini", Marks: config.Everywhere("{gemini}/settings.json"),
		User: []string{"user"}, Project: "project",
		Unasked: config.Object{{Name: "trust", Value: config.Of(true)}},
		Command: []string{"gemini", "mcp", "add", "-s", "user", "-e", "{env}", config.Own, "{command}"},
		Next:    "gemini mcp list shows the bridge, in a folder that Gemini CLI trusts",
		Off:     geminiOff,
		Sent:    config.Sent{PerTool: 48}, // a parameter wait_for_previous
	},
	Rules: func(r *config.Reader) config.Rules {
		lists := readGeminiLists(r, "Gemini CLI", geminiFiles)
		trust := geminiTrust{r, geminiTrustIsOff(r)}
		switches := geminiSwitches(r)
		off := func(name string) (config.Source, bool) {
			by, off := switches[geminiName(name)]
			return by, off
		}
		return config.Rules{Denied: lists.denied, Off: off, Approved: trust.approved}
	},
}

var geminiFiles = []config.File{
	{Scope: "system", Paths: config.Everywhere("{gemini system}")},
	{Scope: "project", Paths: config.Everywhere("{workspace}/.gemini/settings.json"),
		Approval: config.ByRules},
	{Scope: "user", Paths: config.Everywhere("{gemini}/settings.json")},
	{Scope: "system defaults", Paths: config.Everywhere("{gemini defaults}")},
}

// geminiSystem returns where Gemini CLI, or what was made from it, has its system settings and
// defaults.
func geminiSystem(name, variables, dir, macDir string) []config.Dir {
	return []config.Dir{
		{Name: name + " system", Var: variables + "_SYSTEM_SETTINGS_PATH",
			Else: config.PerSystem("/etc/"+dir+"/settings.json",
				"/Library/Application Support/"+macDir+"/settings.json",
				"C:/ProgramData/"+dir+"/settings.json")},
		{Name: name + " defaults", Var: variables + "_SYSTEM_DEFAULTS_PATH",
			Else: config.Everywhere("{" + name + " system}/../system-defaults.json")},
	}
}

var geminiFormat = config.Plain(func(f *config.Format) {
	f.Foreign, f.Disabled, f.Enabled, f.References, f.Program.Dir = "", "", "", config.Dollars, "cwd"
	f.Tools = config.ToolLists{Allow: "includeTools", Deny: "excludeTools", EmptyIsAll: true}
	f.Remote.URLs = []config.URLKey{{Key: "httpUrl", Transport: config.HTTP},
		{Key: "url", Transport: config.SSE}}
	f.Remote.OAuth = config.OAuthKeys{Key: "oauth", ClientID: "clientId", ClientSecret: "clientSecret",
		Scopes: "scopes", Enabled: "enabled"}
})

var geminiEnablement = config.Everywhere("{gemini}/mcp-server-enablement.json")

// geminiOff is what `gemini mcp disable` writes.
func geminiOff(entry []string) config.Preference {
	return config.Preference{Paths: geminiEnablement, Value: config.Of(false),
		Path: []string{geminiName(entry[len(entry)-1]), "enabled"}}
}

// geminiSwitches returns the servers that `gemini mcp disable` has switched off. Gemini CLI allows
// no comments in that file.
func geminiSwitches(r *config.Reader) map[string]config.Source {
	off := map[string]config.Source{}
	for _, p := range r.Expand(geminiEnablement) {
		src := config.Source{Host: "Gemini CLI", Scope: "enablement", Path: p}
		for _, m := range r.Rule(src, true).Rules {
			delete(off, geminiName(m.Name)) // of two with one name the last counts
			if o, _ := m.Value.Object(); o.Get("enabled").Is("false") {
				off[geminiName(m.Name)] = src
			}
		}
	}
	return off
}

// geminiTrustIsOff reports whether the first file with a word on it switches trust in folders off:
// then the user is never asked. A project has no say.
func geminiTrustIsOff(r *config.Reader) bool {
	for _, s := range r.Settings("Gemini CLI", geminiFiles) {
		word := s.Rules.At("security/folderTrust/enabled")
		if s.File.Approval == config.None && (word.Is("true") || word.Is("false") && !s.Exposed) {
			return word.Is("false")
		}
	}
	return false
}

// geminiTrust is what Gemini CLI was told of folders. It uses no servers, the user's own included,
// in a folder that it wasn't told to trust.
type geminiTrust struct {
	r   *config.Reader
	off bool
}

// folderTrust is what a host was told of a folder.
type folderTrust int

const (
	unsaid folderTrust = iota
	trusted
	distrusted
)

// of returns what was said of a directory: the longest rule about a folder it is in counts, and of
// two that are as long the one that doesn't trust.
func (g *geminiTrust) of(dir string) (found folderTrust, by config.Source) {
	longest := 0
	for _, p := range g.r.Expand(config.Everywhere("{gemini trust}")) {
		src := config.Source{Host: "Gemini CLI", Scope: "trusted folders", Path: p}
		for _, m := range config.Merge(g.r.Rule(src, false).Root, nil) {
			word, _ := m.Value.Text()
			folder := g.r.Clean(m.Name)
			said, length, holds := trusted, len(folder), g.r.Holds
			switch word {
			case "TRUST_PARENT":
				folder = path.Dir(folder)
			case "DO_NOT_TRUST":
				said, holds = distrusted, g.r.MayHold
			case "TRUST_FOLDER":
			default:
				continue
			}
			if holds(folder, dir) && (length > longest || length == longest && said == distrusted) {
				longest, found, by = length, said, src
			}
		}
	}
	return found, by
}

func (g *geminiTrust) approved(e *config.Entry) config.Refusal {
	if here := g.r.Workspace(); len(here) > 0 && !g.off {
		switch word, by := g.of(here[0]); word {
		case distrusted:
			return config.Refuse("Gemini CLI doesn't trust this folder, in "+by.String()+
				", and uses no servers in it", "trust it with /permissions in Gemini CLI")
		case unsaid:
			return config.Refuse("Gemini CLI uses no servers in this folder until it is trusted",
				"start gemini in this directory and trust it, or "+config.ListIt)
		}
	}
	if e.File.Approval == config.None {
		return config.Refusal{}
	}
	if g.off {
		return config.Unasked("Gemini CLI doesn't ask where folderTrust is switched off")
	}
	return g.r.TrustedOnly("Gemini CLI", "gemini", func(dir string) bool {
		word, _ := g.of(dir)
		return word == trusted
	})(e)
}
