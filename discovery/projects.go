package discovery

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// projects is the object of ~/.claude.json that holds what Claude Code knows of each project, by the project's path; nil if
// there is none. Where the file is exposed, it may only take away.
func (s *scan) projects() (known *hujson.Object, src Source, exposed bool) {
	paths := s.places.expand(all("{claude.json}"))
	if len(paths) == 0 {
		return nil, Source{}, false
	}
	src = Source{claudeCode, "user", paths[0]}
	f := s.load(src, true, false)
	if f.rules == nil {
		return nil, src, f.exposed
	}
	v := get(f.rules, "projects")
	if v == nil || kind(v) == "null" {
		return nil, src, f.exposed
	}
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		s.problem(src, "", `its "projects" is `+kind(v)+", not an object", "correct it")
	}
	return o, src, f.exposed
}

// projectEntry is what Claude Code knows of the project in a directory.
type projectEntry struct {
	dir string
	*hujson.Object
}

// project is what Claude Code knows of this project: under the root of its repository, then under the working directory.
func (s *scan) project(projects *hujson.Object) []projectEntry {
	var found []projectEntry
	dirs := s.places.by["workspace"]
	for i := len(dirs) - 1; i >= 0; i-- {
		if o := s.places.under(projects, dirs[i]); o != nil {
			found = append(found, projectEntry{dirs[i], o})
		}
	}
	return found
}

// trusted returns the folders that the user has trusted in Claude Code, of those that the working directory is in.
func (s *scan) trusted(projects *hujson.Object) (folders []string) {
	for _, dir := range s.places.by["up"] {
		if o := s.places.under(projects, dir); o != nil && kind(get(o, "hasTrustDialogAccepted")) == "true" {
			folders = append(folders, dir)
		}
	}
	return folders
}

// claudeTrusts reports whether a directory is one that the user has trusted in Claude Code, or lies in one.
func (s *scan) claudeTrusts(dir string) bool {
	return slices.ContainsFunc(s.claude.trusted, func(folder string) bool { return s.places.holds(folder, dir) })
}

// trustedHere reports whether that is so of the working directory.
func (s *scan) trustedHere() bool { return len(s.claude.trusted) > 0 }

// under is the object under a path; on windows by either kind of slash and in any case.
func (p places) under(o *hujson.Object, dir string) *hujson.Object {
	if o == nil {
		return nil
	}
	var found *hujson.Object
	for _, m := range o.Members {
		key := nameOf(m)
		if key == dir || p.windows && strings.EqualFold(p.clean(key), dir) {
			found, _ = m.Value.Value.(*hujson.Object)
		}
	}
	return found
}

// pickLocal is the servers that the user has added for this project only.
func pickLocal(s *scan, _ Source, _ *hujson.Object) []servers {
	src := s.claude.projectsOf
	src.Scope = localScope
	if len(s.claude.projects) == 0 {
		return nil
	}
	group, _ := s.objectAt(src, s.claude.projects[0].Object, "mcpServers")
	if group == nil {
		return nil
	}
	return []servers{{entries: group}}
}

// pickOpenCode is the servers under mcp, or, in the newer shape, those under mcp.servers.
func pickOpenCode(s *scan, src Source, root *hujson.Object) []servers {
	group, _ := s.objectAt(src, root, "mcp")
	if group == nil {
		return nil
	}
	if inner, ok := objectOf(get(group, "servers")); ok && get(inner, "type") == nil {
		older := &hujson.Object{}
		for _, m := range group.Members {
			if o, ok := objectOf(&m.Value); ok && get(o, "type") != nil {
				older.Members = append(older.Members, m)
			}
		}
		return []servers{{entries: inner}, {entries: older}}
	}
	return []servers{{entries: group}}
}
