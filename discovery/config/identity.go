package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Same reports whether two servers are the same program started, or the same server reached, in the
// same way, whatever their names, sources and filters are.
func (s Server) Same(t Server) bool { return s.Identity() == t.Identity() }

// Identity names what is started or connected to, and with what, for what outlives this process: a
// hash, in hexadecimal, of all that Same compares and of the directory that the program is started
// in. A server that says none is started in the working directory of this process, where a command
// such as "python3 tools/mcp.py" is another program than elsewhere.
func (s Server) Identity() string {
	in := s.Dir
	if s.StartedHere() {
		in = workingDirectory()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q in %q", s.definition(), in))
	return hex.EncodeToString(sum[:])
}

// StartedHere reports whether the server, or the program that makes its headers, is started in the
// working directory of its starter.
func (s Server) StartedHere() bool {
	return s.Transport != HTTP && s.Transport != SSE && s.Dir == "" || s.HeadersHelper != ""
}

// workingDirectory returns that of this process, links resolved; empty where it isn't known, as
// after its removal.
func workingDirectory() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	// A link may be another directory tomorrow.
	if physical, err := filepath.EvalSymlinks(dir); err == nil {
		dir = physical
	}
	return dir
}

// definition returns the one list of what makes a server what it is. Formatted with %q it is
// unambiguous, maps are sorted in it, and what is nil is the same as what is empty.
func (s Server) definition() []any {
	d := []any{s.Transport, s.Command, s.Args, s.Dir, s.Env, s.URL, s.Headers, s.HeadersHelper,
		s.BearerTokenEnv, s.OAuth}
	if s.Socket != "" { // what has none is what it was before there were any
		d = append(d, s.Socket)
	}
	for _, secret := range s.Secrets { // another server than one to which the same text is no reference
		d = append(d, secret.place())
	}
	return d
}

// ID names a server's definition for the user's yes to it: name, command, arguments, environment,
// directory, URL and headers. It is the same in every process and every environment: a variable of
// ours counts by its name, what a file fills in by its text. The working directory is part of it
// where the definition is about one project; a user's own is the same in all of them.
func (s Server) ID() string {
	if s.Written != "" {
		return s.Written
	}
	return hash("%q is %s", s.Name, s.Identity())
}

func hash(format string, a ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, a...))
	return hex.EncodeToString(sum[:16])
}

// OfOneProject reports whether ID may be another one in another working directory.
func (s Server) OfOneProject() bool {
	return s.OfProject || s.Source.Scope == LocalScope || s.Source.Scope == Listed
}

// written returns Server.Written of an entry that was as written before it was filled in.
func (r *Reader) written(written, e *Entry) string {
	if e.Source.Host == Own {
		written.Dir = r.StartDir(written) // which counts from the file
	}
	where, scope := "", e.Source.Scope
	if e.OfProject || scope == LocalScope || scope == Listed && inProject(r.Places, r.Env, e.Source.Path) {
		where = r.Env.Dir
	}
	var plugin map[string]string
	if e.Plugin != nil {
		plugin = maps.Clone(e.Plugin.Variables)
		delete(plugin, ProjectDir)
	}
	return hash("%q is %q with %q, %q, %q, %q and %q in %q", e.Name, written.definition(), e.Forward,
		e.Keyring, e.HeaderEnv, plugin, e.taken, where)
}

// inProject reports whether a path is below the working directory, unless that is the home
// directory or above it.
func inProject(p Places, env Env, native string) bool {
	dir := p.Clean(env.Dir)
	return dir != "" && strings.HasPrefix(p.Clean(native), dir+"/") &&
		!strings.HasPrefix(p.Clean(env.Home)+"/", dir+"/")
}

// maxFilters bounds how many filters are remembered of one server.
const maxFilters = 16

// Narrow has what the server's filters hid before hide it still: was is the same definition earlier
// on. It reports false where the filters were changed too often to remember all of them.
func (s *Server) Narrow(was Server) bool {
	twins := slices.Clone(s.Twins)
	for _, t := range append([]Twin{{was.Source, was.Name, was.Tools}}, was.Twins...) {
		same := func(o Twin) bool { return o.Name == t.Name && reflect.DeepEqual(o.Tools, t.Tools) }
		if t.Name == s.Name && !t.Tools.Says() || same(Twin{s.Source, s.Name, s.Tools}) ||
			slices.ContainsFunc(twins, same) {
			continue
		}
		twins = append(twins, t)
	}
	if len(twins) > len(s.Twins) && len(twins) > maxFilters {
		return false
	}
	s.Twins = twins
	return true
}
