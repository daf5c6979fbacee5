package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// ID names a server's definition for the user's yes to it: name, command, arguments, environment,
// directory, URL and headers. It is the same in every process and every environment: a variable of
// ours counts by its name, what a file fills in by its text. The working directory is part of it
// where the definition is about one project; a user's own is the same in all of them.
func (s Server) ID() string {
	if s.Written != "" {
		return s.Written
	}
	return hash("%q is %x", s.Name, s.fingerprint())
}

func hash(format string, a ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, a...))
	return hex.EncodeToString(sum[:16])
}

// OfOneProject reports whether ID may be another one in another working directory.
func (s Server) OfOneProject() bool {
	return s.OfProject || s.Source.Scope == localScope || s.Source.Scope == Listed
}

// clone returns a copy that fill may change.
func (d definition) clone() definition {
	d.Args, d.Env, d.Headers = slices.Clone(d.Args), maps.Clone(d.Env), maps.Clone(d.Headers)
	return d
}

// written returns Server.Written of a definition that nothing has been filled in yet.
func (s *scan) written(r row, d definition) string {
	const here = "\x00"
	named := *s
	named.env.Getenv = func(name string) string {
		if s.env.Getenv(name) == "" {
			return ""
		}
		return here + name
	}
	named.env.Dir = here
	r.form.given = maps.Clone(r.form.given)
	if _, ok := r.form.given[projectDir]; ok {
		r.form.given[projectDir] = here
	}
	_ = named.fill(r, &d) // what can't be filled in makes no server
	d.Dir = named.startedIn(r, d)
	where := ""
	if r.ofProject() || r.scope == localScope || r.scope == Listed && s.inProject(d.Source.Path) {
		where = s.env.Dir
	}
	return hash("%q is %q in %q", d.Name, d.definition(), where)
}

// inProject reports whether a path is below the working directory, unless that is the home
// directory or above it.
func (s *scan) inProject(native string) bool {
	dir := s.places.clean(s.env.Dir)
	return dir != "" && strings.HasPrefix(s.places.clean(native), dir+"/") && !strings.HasPrefix(s.places.clean(s.env.Home)+"/", dir+"/")
}

// maxFilters bounds how many filters are remembered of one server.
const maxFilters = 16

// Narrow has what the server's filters hid before hide it still: was is the same definition earlier
// on. It reports false where the filters were changed too often to remember all of them.
func (s *Server) Narrow(was Server) bool {
	twins := slices.Clone(s.Twins)
	for _, t := range append([]Twin{{was.Source, was.Name, was.Tools}}, was.Twins...) {
		same := func(o Twin) bool { return o.Name == t.Name && reflect.DeepEqual(o.Tools, t.Tools) }
		if t.Name == s.Name && !t.Tools.says() || same(Twin{s.Source, s.Name, s.Tools}) || slices.ContainsFunc(twins, same) {
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
