package discovery

import (
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// geminiRules is what Gemini CLI's files say of which servers are used at all. It compares names without case. In a folder that it
// wasn't told to trust it uses none, the user's own neither.
type geminiRules struct {
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

// readGemini reads mcp.allowed and mcp.excluded, the servers that are switched off, and whether the folder is trusted. A list of any
// file takes away, so that a server has to be in every one there is.
func (s *scan) readGemini() geminiRules {
	g := geminiRules{excluded: map[string]Source{}, disabled: map[string]Source{}}
	said := false
	for _, r := range sources {
		if r.host != gemini {
			continue
		}
		for _, p := range s.places.expand(r.where) {
			src := Source{gemini, r.scope, p}
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
	s.geminiSwitches(&g)
	if here := s.places.by["workspace"]; !g.trusting && len(here) > 0 {
		g.trust, g.trustOf = s.geminiTrust(here[0])
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

// forbid says why Gemini CLI's lists, or its distrust, keep a server back, if they do.
func (g geminiRules) forbid(name string) refusal {
	if g.blind != nil {
		return blindTo(gemini, *g.blind)
	}
	if g.trust == distrusted {
		return refusal{"Gemini CLI doesn't trust this folder, in " + g.trustOf.String() + ", and uses no servers in it", "trust it with /permissions in Gemini CLI"}
	}
	if src, ok := g.excluded[geminiName(name)]; ok {
		return refusal{"Gemini CLI excludes it, in " + src.String(), "take it out of mcp.excluded there to use it"}
	}
	for _, a := range g.allowed {
		if !slices.Contains(a.names, geminiName(name)) {
			return refusal{"Gemini CLI doesn't allow it: it is not in mcp.allowed of " + a.source.String(), "add it there to use it"}
		}
	}
	return refusal{}
}
