package discovery

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// geminiRules is what Gemini CLI's files say of which servers are used at all. It compares names without case. In a folder that it
// wasn't told to trust it uses none, the user's own neither.
type geminiRules struct {
	host     string
	globs    bool    // * and ? in the lists stand for other characters
	blind    *Source // an administrator's file that couldn't be read, or has something else in the place of a rule
	excluded map[string]Source
	allowed  []geminiAllowed
	disabled map[string]Source // by `gemini mcp disable`
	trusting bool              // the user has switched trust in folders off: all are trusted, and nobody is asked
	trust    folderTrust       // in the working directory
	trustOf  Source
}

type geminiAllowed struct {
	source Source
	names  []string
}

// folderTrust is what a host was told of a folder.
type folderTrust int

const (
	unsaid folderTrust = iota
	trusted
	distrusted
)

// readGemini reads mcp.allowed and mcp.excluded, the servers that are switched off, and whether the folder is trusted.
func (s *scan) readGemini() geminiRules {
	g := s.readGeminiLists(gemini)
	s.geminiSwitches(&g)
	if here := s.places.by["workspace"]; !g.trusting && len(here) > 0 {
		g.trust, g.trustOf = s.geminiTrust(here[0])
	}
	return g
}

// readQwen reads the lists of Qwen Code, which was made from Gemini CLI. Its trust in folders is about projects' files alone, and is off
// unless somebody has switched it on.
func (s *scan) readQwen() geminiRules {
	g := s.readGeminiLists(qwen)
	g.trusting, g.globs = true, true
	return g
}

// readGeminiLists reads the settings of a host. A list of any file takes away, so that a server has to be in every one there is.
func (s *scan) readGeminiLists(host string) geminiRules {
	g := geminiRules{host: host, excluded: map[string]Source{}, disabled: map[string]Source{}}
	said := false
	for i := range sources {
		r := &sources[i]
		if r.host != host {
			continue
		}
		for _, p := range s.places.expand(r.where) {
			src := Source{host, r.scope, p}
			f := s.load(src, false, false)
			if (r.scope == "system" || r.scope == "system defaults") && (f.broken || f.root != nil && misruled(f.root)) {
				g.blind = &src
			}
			if f.rules == nil {
				continue
			}
			if word := kind(member(f.rules, "security/folderTrust/enabled")); r.form.gate == open && !said && (word == "true" || word == "false" && !f.exposed) {
				said, g.trusting = true, word == "false" // the rows are in the order in which they count
			}
			if o, ok := objectOf(get(f.rules, "mcp")); ok {
				s.geminiLists(&g, src, o)
			}
		}
	}
	return g
}

// misruled says whether a rule of a settings file is of a kind that it can't be.
func misruled(root *hujson.Object) bool {
	for at, want := range map[string][]string{
		"mcp": {"an object"}, "mcp/allowed": {"an array"}, "mcp/excluded": {"an array"},
		"security": {"an object"}, "security/folderTrust": {"an object"}, "security/folderTrust/enabled": {"true", "false"},
	} {
		v := member(root, at)
		if k := kind(v); k == "nothing" || k == "null" {
			continue
		} else if !slices.Contains(want, k) {
			return true
		}
		if _, isArray := arrayOf(v); isArray {
			if _, ok := stringsOf(v); !ok {
				return true
			}
		}
	}
	return false
}

func (s *scan) geminiLists(g *geminiRules, src Source, o *hujson.Object) {
	for _, name := range s.strings(src, o, "excluded") {
		g.excluded[geminiName(name)] = src
	}
	if k := kind(get(o, "allowed")); k != "nothing" && k != "null" {
		a := geminiAllowed{source: src}
		for _, name := range s.strings(src, o, "allowed") {
			a.names = append(a.names, geminiName(name))
		}
		g.allowed = append(g.allowed, a)
	}
}

// geminiSwitches reads what `gemini mcp disable` has written. Gemini CLI takes no comments there.
func (s *scan) geminiSwitches(g *geminiRules) {
	for _, p := range s.places.expand(all("{gemini}/mcp-server-enablement.json")) {
		src := Source{gemini, "enablement", p}
		f := s.load(src, true, false)
		if f.rules == nil {
			continue
		}
		for _, m := range f.rules.Members {
			if o, ok := objectOf(&m.Value); ok && kind(get(o, "enabled")) == "false" {
				g.disabled[geminiName(nameOf(m))] = src
			} else {
				delete(g.disabled, geminiName(nameOf(m))) // of two with one name the last counts
			}
		}
	}
}

// geminiName is a server's name as Gemini CLI compares it.
func geminiName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// geminiTrust is what Gemini CLI was told of a directory: the longest rule that is about a folder it is in counts, and of two
// that are as long the one that doesn't trust.
func (s *scan) geminiTrust(dir string) (found folderTrust, of Source) {
	longest := -1
	for _, p := range s.places.expand(all("{gemini trust}")) {
		src := Source{gemini, "trusted folders", p}
		f := s.load(src, false, false)
		if f.root == nil {
			continue
		}
		last := map[string]int{}
		for i, m := range f.root.Members {
			last[nameOf(m)] = i
		}
		for i, m := range f.root.Members {
			if last[nameOf(m)] != i {
				continue // of two with one name the last counts
			}
			word, _ := stringOf(&m.Value)
			folder := s.places.clean(nameOf(m))
			length := len(folder)
			if word == "TRUST_PARENT" {
				folder = path.Dir(folder)
			}
			if length < longest || length == longest && word != "DO_NOT_TRUST" || length == 0 || !s.places.holds(folder, dir) {
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

// within says whether the working directory is a folder or in it.
func (p places) within(folder string) bool {
	return len(p.by["workspace"]) > 0 && p.holds(folder, p.by["workspace"][0])
}

// names reports whether one of a list's names is a server's.
func (g geminiRules) names(list []string, server string) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		return name == geminiName(server) || g.globs && ToolRule{Pattern: name}.matches(geminiName(server))
	})
}

// forbid says why Gemini CLI's lists, or its distrust, keep a server back, if they do.
func (g geminiRules) forbid(name string) refusal {
	if g.blind != nil {
		return blindTo(g.host, *g.blind)
	}
	if g.trust == distrusted {
		return refusal{g.host + " doesn't trust this folder, in " + g.trustOf.String() + ", and uses no servers in it", "trust it with /permissions in " + g.host}
	}
	for _, excluded := range slices.Sorted(maps.Keys(g.excluded)) {
		if g.names([]string{excluded}, name) {
			return refusal{g.host + " excludes it, in " + g.excluded[excluded].String(), "take it out of mcp.excluded there to use it"}
		}
	}
	for _, a := range g.allowed {
		if !g.names(a.names, name) {
			return refusal{g.host + " doesn't allow it: it is not in mcp.allowed of " + a.source.String(), "add it there to use it"}
		}
	}
	return refusal{}
}
