package discovery

import (
	"slices"
	"strings"
)

// gated says why a server of a project is not to be used without its user's word, if it isn't.
func (s *scan) gated(r row, name string) refusal {
	const list = "list the file in MCP_BRIDGE_CONFIG if you trust it"
	switch r.form.gate {
	case asked:
		return s.claude.approval(name)
	case unknown:
		return refusal{r.host + " asks before it starts what a project brings along, and its answer can't be read from outside", list}
	case unasked:
		return refusal{"the bridge doesn't start what a project brings along unless its user has said so, and " + r.host + " asks nobody", list}
	case codexTrust:
		if !s.codexTrusts() {
			return refusal{"Codex doesn't trust this project", "start codex in this directory and trust it, or " + list}
		}
	case geminiTrust:
		if !s.geminiTrusts() {
			return refusal{"Gemini CLI doesn't trust this folder", "start gemini in this directory and trust it, or " + list}
		}
	}
	return refusal{}
}

// codexTrusts says whether Codex's own file calls this project, or the repository that it is of, trusted.
func (s *scan) codexTrusts() bool {
	for _, p := range s.places.expand(all("{codex}/config.toml")) {
		f := s.load(Source{codex, "user", p}, false, false)
		if f.root == nil {
			continue
		}
		projects, _ := objectOf(get(f.root, "projects"))
		for _, dir := range s.places.by["workspace"] {
			if o := s.places.under(projects, dir); o != nil {
				level, _ := stringOf(get(o, "trust_level"))
				return level == "trusted"
			}
		}
	}
	return false
}

// geminiTrusts says whether the working directory is in a folder that Gemini CLI trusts. The nearest word counts.
func (s *scan) geminiTrusts() bool {
	for _, p := range s.places.expand(all("{home}/.gemini/trustedFolders.json")) {
		f := s.load(Source{gemini, "trusted folders", p}, false, false)
		if f.root == nil {
			continue
		}
		for _, dir := range s.places.by["up"] {
			for _, m := range f.root.Members {
				word, _ := stringOf(&m.Value)
				folder := s.places.clean(nameOf(m))
				if word == "TRUST_PARENT" {
					folder = parent(folder)
				}
				if folder == dir || s.places.windows && strings.EqualFold(folder, dir) {
					return word == "TRUST_FOLDER" || word == "TRUST_PARENT"
				}
			}
		}
	}
	return false
}

func parent(dir string) string {
	if i := strings.LastIndexByte(dir, '/'); i > 0 {
		return dir[:i]
	}
	return "/"
}

// geminiLists is what Gemini CLI's files say of which servers are used at all.
type geminiLists struct {
	excluded map[string]Source
	allowed  []geminiAllowed
}

type geminiAllowed struct {
	source Source
	names  []string
}

// readGemini reads mcp.allowed and mcp.excluded. A list of any file takes away, so that a server has to be in every one there is.
func (s *scan) readGemini() geminiLists {
	l := geminiLists{excluded: map[string]Source{}}
	for _, r := range sources {
		if r.host != gemini {
			continue
		}
		for _, p := range s.places.expand(r.where) {
			src := Source{gemini, r.scope, p}
			f := s.load(src, false, false)
			if f.root == nil {
				continue
			}
			o, ok := objectOf(get(f.root, "mcp"))
			if !ok {
				continue
			}
			for _, name := range s.strings(src, o, "excluded") {
				l.excluded[name] = src
			}
			if k := kind(get(o, "allowed")); k != "nothing" && k != "null" {
				l.allowed = append(l.allowed, geminiAllowed{src, s.strings(src, o, "allowed")})
			}
		}
	}
	return l
}

func (l geminiLists) forbid(name string) refusal {
	if src, ok := l.excluded[name]; ok {
		return refusal{"Gemini CLI excludes it, in " + src.String(), "take it out of mcp.excluded there to use it"}
	}
	for _, a := range l.allowed {
		if !slices.Contains(a.names, name) {
			return refusal{"Gemini CLI doesn't allow it: it is not in mcp.allowed of " + a.source.String(), "add it there to use it"}
		}
	}
	return refusal{}
}

// programs reports settings that are programs: what servers these would add can't be known without running them.
func (s *scan) programs() {
	for _, p := range s.places.expand(all("{config}/crush/crushrc")) {
		if info, err := s.stat(p); err == nil && info.Mode().IsRegular() {
			s.refuse(Source{"Crush", "user", p}, "", Unusable, refusal{"it is a script, and which servers it would add can't be known without running it",
				"list those in a file of MCP_BRIDGE_CONFIG too"})
		}
	}
}
