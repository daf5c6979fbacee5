package discovery

// gated says why a server of a project is not to be used without its user's word, if it isn't.
func (s *scan) gated(r row, name string) refusal {
	const list = "list the file in MCP_BRIDGE_CONFIG if you trust it"
	if r.host == gemini && s.env.Dir != "" && !s.gemini.trusting && s.gemini.trust != trusted {
		return refusal{"Gemini CLI uses no servers in this folder until it is trusted", "start gemini in this directory and trust it, or " + list}
	}
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
		if s.gemini.trusting {
			return refusal{"the bridge doesn't start what a project brings along unless its user has said so, and Gemini CLI asks nobody where folderTrust is switched off", list}
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

// programs reports settings that are programs: what servers these would add can't be known without running them.
func (s *scan) programs() {
	for _, p := range s.places.expand(all("{config}/crush/crushrc")) {
		if info, err := s.stat(p); err == nil && info.Mode().IsRegular() {
			s.refuse(Source{"Crush", "user", p}, "", Unusable, refusal{"it is a script, and which servers it would add can't be known without running it",
				"list those in a file of MCP_BRIDGE_CONFIG too"})
		}
	}
}
