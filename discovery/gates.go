package discovery

import "strings"

// gated says why a server of a project is not to be used without its user's word, if it isn't.
func (s *scan) gated(r row, src Source, name string) refusal {
	const list = "list the file in MCP_BRIDGE_CONFIG if you trust it"
	if r.host == gemini && s.env.Dir != "" && !s.gemini.trusting && s.gemini.trust != trusted {
		return refusal{"Gemini CLI uses no servers in this folder until it is trusted", "start gemini in this directory and trust it, or " + list}
	}
	switch r.form.gate {
	case asked:
		return s.approval(name, src)
	case unknown:
		return refusal{r.host + " asks before it starts what a project brings along, and its answer can't be read from outside", list}
	case unasked:
		return refusal{"the bridge doesn't start what a project brings along unless its user has said so, and " + r.host + " asks nobody", list}
	case codexTrust:
		dir := s.places.projectOf(src.Path)
		if !s.codexTrusts(dir) {
			return refusal{"Codex doesn't trust " + s.folder(dir, "this project"), "start codex in " + s.folder(dir, "this directory") + " and trust it, or " + list}
		}
	case copilotTrust:
		if dir := s.places.projectOf(src.Path); !s.copilotTrusts(dir) {
			return refusal{"Copilot CLI isn't told to trust " + s.folder(dir, "this folder"), "start copilot in " + s.folder(dir, "this directory") + " and trust it, or " + list}
		}
	case geminiTrust:
		if s.gemini.trusting {
			return refusal{"the bridge doesn't start what a project brings along unless its user has said so, and Gemini CLI asks nobody where folderTrust is switched off", list}
		}
		dir := s.places.projectOf(src.Path)
		if word, _ := s.geminiTrust(dir); word != trusted {
			return refusal{"Gemini CLI isn't told to trust " + s.folder(dir, "this folder"), "start gemini in " + s.folder(dir, "this directory") + " and trust it, or " + list}
		}
	}
	return refusal{}
}

// approval says what is missing for a server of .mcp.json. What the user approves of in settings is a name, or all names, of every
// repository there is: anybody's server could have it, so that the user has to trust the project too. No word about a project is one
// about the directories above it.
func (s *scan) approval(name string, src Source) refusal {
	p, dir := &s.claude, s.places.projectOf(src.Path)
	trusted := s.claudeTrusts(dir)
	if by, ok := p.rejected[plain(name)]; ok {
		return refusal{"it was rejected in Claude Code, in " + by.String(), "take it out of disabledMcpjsonServers there to use it"}
	}
	switch {
	case p.here.has(name) && (trusted || s.places.holds(p.projects[0].dir, dir)), trusted && p.anywhere.has(name):
		return refusal{}
	case p.here.has(name), p.anywhere.has(name) && s.trustedHere():
		return refusal{"it lies above the folder that is trusted in Claude Code", "start claude in " + show(s.places.native(dir)) + " and trust it, or list the file in MCP_BRIDGE_CONFIG"}
	case p.anywhere.has(name):
		return refusal{"Claude Code's settings approve it, but this project is not yet trusted there", "start claude in this directory and trust it"}
	}
	return refusal{"it is not yet approved in Claude Code", "start claude in this directory, trust it and approve the server"}
}

// folder is what messages call a directory: by its path, unless it is the working directory.
func (s *scan) folder(dir, here string) string {
	if up := s.places.by["up"]; len(up) > 0 && up[0] == dir {
		return here
	}
	return show(s.places.native(dir))
}

// runsProject says of an entry, as it is written, that using it would run what lies in a project, before its user has trusted that: a
// program of it, variables out of a file of it, with which any program can be made to do anything, or a command line for the shell.
func (s *scan) runsProject(r row, d definition) refusal {
	if r.host == claudeCode {
		if d.HeadersHelper != "" && (r.scope == "project" && !s.claudeTrusts(s.places.projectOf(d.Source.Path)) || r.scope == localScope && !s.trustedHere()) {
			return refusal{"its headersHelper is a command, and this project is not yet trusted in Claude Code", "start claude in this directory and trust it"}
		}
		if r.scope == pluginScope && !s.trustedHere() {
			return runsProjectDir(d)
		}
		return refusal{}
	}
	if r.host == own {
		return refusal{}
	}
	for _, t := range [][2]string{{"command", d.Command}, {"envFile", d.envFile}} {
		if strings.Contains(t[1], "${workspaceFolder}") {
			return refusal{"its " + t[0] + " is of whatever project the bridge runs in, and whether " + r.host + " trusts that can't be read from outside",
				"name it by its whole path, or list the file in MCP_BRIDGE_CONFIG"}
		}
	}
	return refusal{}
}

// runsProjectDir says whether a plugin, which knows no project, would run what lies in this one.
func runsProjectDir(d definition) refusal {
	for _, t := range [][2]string{{"command", d.Command}, {"headersHelper", d.HeadersHelper}} {
		if strings.Contains(t[1], projectDir) {
			return refusal{"its " + t[0] + " is of whatever project the bridge runs in, and this one is not yet trusted in Claude Code", "start claude in this directory and trust it"}
		}
	}
	return refusal{}
}

// codexTrusts reports whether Codex's own file calls a directory of this project trusted: by its own path, or by that of the
// repository that it is in. What is said of the working directory is not said of the repository that it is a part of.
func (s *scan) codexTrusts(project string) bool {
	for _, p := range s.places.expand(all("{codex}/config.toml")) {
		f := s.load(Source{codex, "user", p}, false, false)
		if f.root == nil {
			continue
		}
		projects, _ := objectOf(get(f.root, "projects"))
		for _, dir := range s.places.by["workspace"] {
			if o := s.places.under(projects, dir); o != nil {
				level, _ := stringOf(get(o, "trust_level"))
				if level != "trusted" || s.places.holds(dir, project) {
					return level == "trusted"
				}
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
	s.unread()
}
