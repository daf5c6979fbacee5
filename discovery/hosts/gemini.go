package hosts

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

var gemini = &config.Host{
	Name: "Gemini CLI",
	Dirs: append([]config.Dir{
		{Name: "gemini", Var: "GEMINI_CLI_HOME", Then: ".gemini", Else: config.Everywhere("{home}/.gemini")},
		{Name: "gemini trust", Var: "GEMINI_CLI_TRUSTED_FOLDERS_PATH",
			Else: config.Everywhere("{gemini}/trustedFolders.json")},
	}, geminiSystem("gemini", "GEMINI_CLI", "gemini-cli", "GeminiCli")...),
	Files: geminiFiles,
	Rules: func(r *config.Reader) config.Rules {
		g := &geminiRules{r: r, host: "Gemini CLI", excluded: map[string]config.Source{},
			disabled: map[string]config.Source{}}
		g.readLists(geminiFiles)
		g.readSwitches()
		if here := r.Workspace(); !g.trusting && len(here) > 0 {
			g.trust, g.trustOf = g.folder(here[0])
		}
		return config.Rules{Denied: g.denied, Off: g.off, Approved: g.approved}
	},
}

var geminiFiles = []config.File{
	{Scope: "system", Paths: config.Everywhere("{gemini system}"), Format: geminiFormat},
	{Scope: "project", Paths: config.Everywhere("{workspace}/.gemini/settings.json"), Format: geminiFormat,
		Approval: config.ByRules},
	{Scope: "user", Paths: config.Everywhere("{gemini}/settings.json"), Format: geminiFormat},
	{Scope: "system defaults", Paths: config.Everywhere("{gemini defaults}"), Format: geminiFormat},
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

// geminiRules is what Gemini CLI's files say of which servers are used at all. It compares names
// without case. In a folder that it wasn't told to trust it uses none, the user's own neither.
type geminiRules struct {
	r        *config.Reader
	host     string
	patterns bool           // names in the lists are patterns
	unclear  *config.Source // an administrator's file that can't be read, or has a rule of a wrong kind
	excluded map[string]config.Source
	allowed  []geminiAllowed
	disabled map[string]config.Source // by `gemini mcp disable`
	trusting bool                     // trust in folders is switched off: the user is never asked
	trust    folderTrust              // in the working directory
	trustOf  config.Source
}

type geminiAllowed struct {
	source config.Source
	names  []string
}

// folderTrust is what a host was told of a folder.
type folderTrust int

const (
	unsaid folderTrust = iota
	trusted
	distrusted
)

// readLists reads the settings. A list of any file takes away: a server has to be in every one.
func (g *geminiRules) readLists(files []config.File) {
	said := false
	for _, file := range files {
		for _, p := range g.r.Expand(file.Paths) {
			src := config.Source{Host: g.host, Scope: file.Scope, Path: p}
			f := g.r.Rule(src, false)
			if strings.HasPrefix(file.Scope, "system") && (f.Broken || misruled(f.Root)) {
				g.unclear = &src
			}
			word := f.Rules.At("security/folderTrust/enabled")
			if file.Approval == config.None && !said && (word.Is("true") || word.Is("false") && !f.Exposed) {
				said, g.trusting = true, word.Is("false") // the files are in the order in which they count
			}
			lists := f.Rules.Object("mcp")
			for _, name := range g.r.Strings(src, lists, "excluded") {
				g.excluded[geminiName(name)] = src
			}
			if !lists.Get("allowed").Absent() {
				a := geminiAllowed{source: src}
				for _, name := range g.r.Strings(src, lists, "allowed") {
					a.names = append(a.names, geminiName(name))
				}
				g.allowed = append(g.allowed, a)
			}
		}
	}
}

// misruled reports whether a rule of a settings file is of a kind that it can't be.
func misruled(root config.Object) bool {
	for at, want := range map[string]string{
		"mcp": "an object", "mcp/allowed": "an array", "mcp/excluded": "an array",
		"security": "an object", "security/folderTrust": "an object", "security/folderTrust/enabled": "true",
	} {
		v := root.At(at)
		_, strings := v.Strings()
		if !v.Absent() && (!v.Is(want) && (want != "true" || !v.Is("false")) || want == "an array" &&
			!strings) {
			return true
		}
	}
	return false
}

// readSwitches reads what `gemini mcp disable` has written. Gemini CLI takes no comments there.
func (g *geminiRules) readSwitches() {
	for _, p := range g.r.Expand(config.Everywhere("{gemini}/mcp-server-enablement.json")) {
		src := config.Source{Host: g.host, Scope: "enablement", Path: p}
		for _, m := range g.r.Rule(src, true).Rules {
			o, _ := m.Value.Object()
			if o.Get("enabled").Is("false") {
				g.disabled[geminiName(m.Name)] = src
			} else {
				delete(g.disabled, geminiName(m.Name)) // of two with one name the last counts
			}
		}
	}
}

// geminiName returns a server's name as Gemini CLI compares it.
func geminiName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// folder returns what Gemini CLI was told of a directory: the longest rule about a folder it is in
// counts, and of two that are as long the one that doesn't trust.
func (g *geminiRules) folder(dir string) (found folderTrust, of config.Source) {
	longest := -1
	for _, p := range g.r.Expand(config.Everywhere("{gemini trust}")) {
		src := config.Source{Host: g.host, Scope: "trusted folders", Path: p}
		for _, m := range config.Merge(g.r.Rule(src, false).Root, nil) {
			word, _ := m.Value.Text()
			folder := g.r.Clean(m.Name)
			length := len(folder)
			if word == "TRUST_PARENT" {
				folder = path.Dir(folder)
			}
			if length < longest || length == longest && word != "DO_NOT_TRUST" || length == 0 ||
				!g.r.Holds(folder, dir) {
				continue
			}
			switch word {
			case "TRUST_FOLDER", "TRUST_PARENT":
				longest, found, of = length, trusted, src
			case "DO_NOT_TRUST":
				longest, found, of = length, distrusted, src
			}
		}
	}
	return found, of
}

// names reports whether one of a list's names is a server's.
func (g *geminiRules) names(list []string, server string) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		return name == geminiName(server) || g.patterns && config.MatchStars(name, geminiName(server))
	})
}

func (g *geminiRules) denied(e *config.Entry) config.Refusal {
	switch {
	case g.unclear != nil:
		return config.Unclear(g.host, *g.unclear)
	case g.trust == distrusted:
		return config.Refuse(g.host+" doesn't trust this folder, in "+g.trustOf.String()+
			", and uses no servers in it",
			"trust it with /permissions in "+g.host)
	}
	for _, excluded := range slices.Sorted(maps.Keys(g.excluded)) {
		if g.names([]string{excluded}, e.Name) {
			return config.Refuse(g.host+" excludes it, in "+g.excluded[excluded].String(),
				"take it out of mcp.excluded there to use it")
		}
	}
	for _, a := range g.allowed {
		if !g.names(a.names, e.Name) {
			return config.Refuse(g.host+" doesn't allow it: it is not in mcp.allowed of "+a.source.String(),
				"add it there to use it")
		}
	}
	return config.Refusal{}
}

func (g *geminiRules) off(e *config.Entry) config.Refusal {
	if by, ok := g.disabled[geminiName(e.Name)]; ok {
		return config.Refuse("it is disabled in Gemini CLI, in "+by.String(),
			"enable it with `gemini mcp enable` and its name")
	}
	return config.Refusal{}
}

func (g *geminiRules) approved(e *config.Entry) config.Refusal {
	if g.r.Env.Dir != "" && !g.trusting && g.trust != trusted {
		return config.Refuse("Gemini CLI uses no servers in this folder until it is trusted",
			"start gemini in this directory and trust it, or "+config.ListIt)
	}
	if e.File.Approval == config.None {
		return config.Refusal{}
	}
	if g.trusting {
		return config.Refuse("the bridge doesn't start what a project brings along unless its user has "+
			"said so, "+
			"and Gemini CLI doesn't ask where folderTrust is switched off", config.ListIt)
	}
	dir := g.r.ProjectOf(e.Source.Path)
	if word, _ := g.folder(dir); word != trusted {
		return config.Refuse("Gemini CLI isn't told to trust "+g.r.Folder(dir, "this folder"),
			"start gemini in "+g.r.Folder(dir, "this directory")+" and trust it, or "+config.ListIt)
	}
	return config.Refusal{}
}

// qwenCode was made from Gemini CLI. Its trust in folders is about projects' files alone, and is
// off unless somebody has switched it on.
var qwenCode = &config.Host{
	Name: "Qwen Code", Dirs: geminiSystem("qwen", "QWEN_CODE", "qwen-code", "QwenCode"), Files: qwenFiles,
	Rules: func(r *config.Reader) config.Rules {
		g := &geminiRules{r: r, host: "Qwen Code", patterns: true, excluded: map[string]config.Source{}}
		g.readLists(qwenFiles)
		return config.Rules{Denied: g.denied}
	},
}

var qwenFiles = []config.File{
	{Scope: "system", Paths: config.Everywhere("{qwen system}"), Format: geminiFormat},
	{Scope: "project", Paths: config.Everywhere("{workspace}/.qwen/settings.local.json",
		"{workspace}/.qwen/settings.json"),
		Format: geminiFormat, Approval: config.HostAsks},
	{Scope: "user", Paths: config.Everywhere("{home}/.qwen/settings.json"), Format: geminiFormat},
	{Scope: "system defaults", Paths: config.Everywhere("{qwen defaults}"), Format: geminiFormat},
}
