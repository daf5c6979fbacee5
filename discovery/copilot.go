package discovery

import "slices"

// copilotSettings calls f for each file in which Copilot CLI keeps what its user has said.
func (s *scan) copilotSettings(f func(src Source, f *file)) {
	for _, p := range s.places.expand(all("{copilot}/settings.json", "{copilot}/config.json")) {
		src := Source{copilot, "settings", p}
		f(src, s.load(src, false, false))
	}
}

// copilotTrusts reports whether a directory is a folder that the user has trusted in Copilot CLI,
// or lies in one.
func (s *scan) copilotTrusts(dir string) (yes bool) {
	s.copilotSettings(func(src Source, f *file) {
		if f.root == nil {
			return
		}
		for _, key := range []string{"trusted_folders", "trustedFolders"} { // its older and its newer name
			for _, folder := range s.strings(src, f.root, key) {
				yes = yes || s.places.holds(s.places.clean(folder), dir)
			}
		}
	})
	return yes
}

// copilotOff returns the file in which a server is switched off.
func (s *scan) copilotOff(name string) (by Source, off bool) {
	s.copilotSettings(func(src Source, f *file) {
		if f.rules != nil && slices.Contains(s.strings(src, f.rules, "disabledMcpServers"), name) {
			by, off = src, true
		}
	})
	return by, off
}

// readCopilot reads the .mcp.json of a project that is trusted in Copilot CLI. Elsewhere the file
// is Claude Code's alone, and listed there.
func readCopilot(s *scan, r row) {
	for _, p := range s.places.expand(all("{workspace}/.mcp.json")) {
		if !s.listing[p] && s.copilotTrusts(s.places.projectOf(p)) {
			s.file(r, p, false)
		}
	}
}
