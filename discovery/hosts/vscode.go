package hosts

import (
	"path"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// The programs that VS Code's source is made into, and the directories of their users' settings.
var (
	vsCode         = edition("VS Code", "Code/User", "vscode", "code")
	vsCodeInsiders = edition("VS Code Insiders", "Code - Insiders/User", "vscode-insiders", "code-insiders")
	vsCodium       = edition("VSCodium", "VSCodium/User", "vscodium", "codium")

	editionDirs = []string{"Code/User", "Code - Insiders/User", "VSCodium/User"}
)

var vsCodeServer = &config.Host{
	Name: "VS Code Server", Format: vsCodeFormat,
	Files: []config.File{{Scope: "user",
		Paths: config.Everywhere("{home}/.vscode-server/data/User/mcp.json",
			"{home}/.vscode-server-insiders/data/User/mcp.json",
			"{home}/.vscodium-server/data/User/mcp.json")}},
	Rules: func(r *config.Reader) config.Rules {
		return config.Rules{Denied: (&vsCodeRules{r: r, host: "VS Code Server"}).denied}
	},
}

var visualStudio = &config.Host{Name: "Visual Studio", Format: vsCodeFormat, Files: []config.File{
	{Scope: "user", Paths: config.Paths{Windows: []string{"{home}/.mcp.json"}}},
}}

var vsCodeFormat = config.Plain(func(f *config.Format) {
	f.Key, f.Foreign, f.References = "servers", "mcpServers", config.Editor
	f.Program.Dir, f.Program.EnvFile, f.Program.NullEnv = "cwd", "envFile", true
	f.Remote.Sockets = true
	f.Finish = func(e *config.Entry, m *config.Members) {
		if v := m.Get("sandboxEnabled"); !v.Absent() && !v.Is("false") {
			e.Unusable = config.Refuse("VS Code runs it in a sandbox of its own, which the bridge can't do",
				"list it in a file of MCP_BRIDGE_CONFIG to run it without")
		}
	}
})

func edition(name, dir, id, program string) *config.Host {
	h := &config.Host{Name: name, Format: vsCodeFormat, Files: []config.File{
		{Scope: "user", Paths: config.Settings(dir + "/mcp.json")},
		{Scope: "profile"},
	}}
	h.Install = &config.Install{ID: id, Program: program, User: []string{"user"}, Entry: stdioType,
		Command: []string{program, "--add-mcp", "{json}"},
		Next:    "the command \"MCP: List Servers\" shows the bridge, and asks whether to trust it"}
	if name == "VS Code" {
		h.Install.Project = "workspace"
		h.Files = append([]config.File{{Scope: "workspace",
			Paths:    config.Everywhere("{workspace}/.vscode/mcp.json"),
			Approval: config.HostAsks}}, h.Files...)
	}
	h.Rules = func(r *config.Reader) config.Rules {
		v := &vsCodeRules{r: r, host: name, settingsOf: map[string]string{}}
		v.readProfiles(dir)
		return config.Rules{Denied: v.denied, Paths: func(scope string) []string {
			if scope == "profile" {
				return v.profiles
			}
			return nil
		}}
	}
	return h
}

type vsCodeRules struct {
	r          *config.Reader
	host       string
	profiles   []string          // files of servers
	settingsOf map[string]string // directory of a profile → that whose settings it has
}

// maxProfiles bounds how many profiles of one edition are read.
const maxProfiles = 100

// readProfiles finds the profiles that have servers of their own.
func (v *vsCodeRules) readProfiles(dir string) {
	for _, p := range v.r.Expand(config.Settings(dir)) {
		user := v.r.Clean(p)
		src := config.Source{Host: v.host, Scope: "profiles", Path: v.r.Native(user +
			"/globalStorage/storage.json")}
		list, _ := v.r.Rule(src, false).Root.Get("userDataProfiles").Array()
		for _, e := range list[:min(len(list), maxProfiles)] {
			o, _ := e.Object()
			location := o.Text("location")
			shared := o.Object("useDefaultFlags")
			if location == "" || path.Clean("/"+location) != "/"+location ||
				strings.ContainsAny(location, `\:`) ||
				shared.Get("mcp").Is("true") {
				continue // it has to be a directory below profiles, with servers of its own
			}
			profile := user + "/profiles/" + location
			v.profiles = append(v.profiles, v.r.Native(profile+"/mcp.json"))
			if shared.Get("settings").Is("true") {
				v.settingsOf[profile] = user
			}
		}
	}
}

// denied refuses the servers of a file for which the administrator's policy, or else the settings
// of the profile, says that there are none. On macOS and Windows the policy is kept elsewhere.
func (v *vsCodeRules) denied(e *config.Entry) config.Refusal {
	if e.File.Approval != config.None {
		return config.Refusal{}
	}
	if !v.r.Windows && !v.r.Darwin {
		src := config.Source{Host: "VS Code", Scope: "policy", Path: "/etc/vscode/policy.json"}
		f := v.r.Rule(src, false)
		switch value := f.Root.Get("ChatMCP"); {
		case f.Broken:
			return config.Unclear("VS Code", src)
		case value.Is("a string"), value.Is("true"), value.Is("false"):
			return v.refuse("its administrator's ChatMCP", src, value)
		case !value.Is("nothing"):
			return config.Unclear("VS Code", src)
		}
	}
	dir := path.Dir(v.r.Clean(e.Source.Path))
	if user := v.settingsOf[dir]; user != "" {
		dir = user
	}
	src := config.Source{Host: v.host, Scope: "settings", Path: v.r.Native(dir + "/settings.json")}
	settings := v.r.Rule(src, false).Rules
	for _, key := range []string{"chat.mcp.access", "chat.mcp.enabled"} { // the newer and the older name
		if value := settings.Get(key); !value.Is("nothing") {
			return v.refuse(key, src, value)
		}
	}
	return config.Refusal{}
}

// refuse returns what the value of a setting keeps back.
func (v *vsCodeRules) refuse(setting string, src config.Source, value config.Value) config.Refusal {
	word, _ := value.Text()
	switch {
	case word == "none", value.Is("false"):
		return config.Refuse(v.host+" uses no servers: "+setting+" says so in "+src.String(),
			"change it there to use them")
	case word == "registry":
		return config.Refuse(v.host+" uses only servers of its registry, and which those are can't be told "+
			"from outside: "+setting+" says so in "+src.String(),
			"list this one in a file of MCP_BRIDGE_CONFIG if it may be used")
	}
	return config.Refusal{}
}

// extension returns the paths of a file that an extension keeps in each edition.
func extension(file string) (p config.Paths) {
	for _, dir := range editionDirs {
		one := config.Settings(dir + "/globalStorage/" + file)
		p.Linux = append(p.Linux, one.Linux...)
		p.Darwin = append(p.Darwin, one.Darwin...)
		p.Windows = append(p.Windows, one.Windows...)
	}
	return p
}
