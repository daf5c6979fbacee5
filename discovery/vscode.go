package discovery

import (
	"path"
	"strings"

	"github.com/tailscale/hujson"
)

// An edition is one of the programs that VS Code's source is made into.
type edition struct {
	host string
	dir  string // of its users' settings, as perOS takes it
}

var editions = []edition{{"VS Code", "Code/User"}, {"VS Code Insiders", "Code - Insiders/User"}, {"VSCodium", "VSCodium/User"}}

// profilesOf is the name of the place that is the directories of an edition's profiles.
func profilesOf(host string) string { return host + " profiles" }

// maxProfiles is how many profiles of one edition are read.
const maxProfiles = 100

// readProfiles makes places of the directories of each edition's profiles that have servers of their own. The default profile,
// whose directory the others are below, isn't among them.
func (s *scan) readProfiles() {
	for _, e := range editions {
		for _, p := range s.places.expand(perOS(e.dir)) {
			user := s.places.clean(p)
			f := s.load(Source{e.host, "profiles", s.places.native(user + "/globalStorage/storage.json")}, false, false)
			if f.root == nil {
				continue
			}
			list, ok := arrayOf(get(f.root, "userDataProfiles"))
			if !ok {
				continue
			}
			for _, v := range list.Elements[:min(len(list.Elements), maxProfiles)] {
				s.profile(e.host, user, &v)
			}
		}
	}
}

// profile takes one over: it may have its own servers and settings, or the default profile's.
func (s *scan) profile(host, user string, v *hujson.Value) {
	o, _ := objectOf(v)
	if o == nil {
		return
	}
	location, _ := stringOf(get(o, "location"))
	if location == "" || path.Clean("/"+location) != "/"+location || strings.ContainsAny(location, `\:`) {
		return // it is to be a directory below profiles
	}
	shared := objectIn(o, "useDefaultFlags")
	if kind(get(shared, "mcp")) == "true" {
		return
	}
	dir := user + "/profiles/" + location
	s.places.by[profilesOf(host)] = append(s.places.by[profilesOf(host)], dir)
	if kind(get(shared, "settings")) == "true" {
		s.settingsOf[dir] = user
	}
}

// codeAccess says why an edition uses none of the servers of a file, if the administrator's policy or the profile's settings say so. A
// policy goes before settings. On macOS and Windows it is kept where the bridge doesn't look.
func (s *scan) codeAccess(host, file string) refusal {
	if !s.places.windows && s.places.where != "darwin" {
		src := Source{"VS Code", "policy", "/etc/vscode/policy.json"}
		f := s.load(src, false, false)
		if f.broken {
			return blindTo("VS Code", src)
		}
		if f.root != nil {
			switch v := get(f.root, "ChatMCP"); kind(v) {
			case "nothing":
			case "a string", "true", "false":
				return codeRefusal(host, "its administrator's ChatMCP", src, v)
			default:
				return blindTo("VS Code", src)
			}
		}
	}
	dir := path.Dir(s.places.clean(file))
	if user := s.settingsOf[dir]; user != "" {
		dir = user
	}
	src := Source{host, "settings", s.places.native(dir + "/settings.json")}
	f := s.load(src, false, false)
	if f.rules == nil {
		return refusal{}
	}
	const access, older = "chat.mcp.access", "chat.mcp.enabled"
	if v := get(f.rules, access); v != nil {
		return codeRefusal(host, access, src, v)
	}
	return codeRefusal(host, older, src, get(f.rules, older))
}

// codeRefusal is what the value of a setting keeps back.
func codeRefusal(host, setting string, src Source, v *hujson.Value) refusal {
	word, _ := stringOf(v)
	switch {
	case word == "none", kind(v) == "false":
		return refusal{host + " uses no servers: " + setting + " says so in " + src.String(), "change it there to use them"}
	case word == "registry":
		return refusal{host + " uses only servers of its registry, and which those are can't be told from outside: " + setting + " says so in " + src.String(),
			"list this one in a file of MCP_BRIDGE_CONFIG if it may be used"}
	}
	return refusal{}
}
