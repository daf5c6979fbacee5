package hibernation

import (
	"io/fs"
	"os"
	"slices"
	"strings"
)

// List returns the sandboxes of an owner that are saved, the last used first. Those that can't be
// read are left out, and logged.
func (s *Store) List(owner string) []Saved {
	return s.list(prefix(owner), func(v Saved) bool { return v.Owner == owner })
}

// All does the same for all owners.
func (s *Store) All() []Saved { return s.list("", func(Saved) bool { return true }) }

func (s *Store) list(begin string, want func(Saved) bool) (all []Saved) {
	for _, name := range s.names(begin) {
		v, err := s.look(name)
		switch {
		case err != nil:
			s.cfg.Log.Warn("a sandbox that was saved can't be read", "file", s.path(name)+savedSuffix, "err", err)
		case want(v) && prefix(v.Owner)+v.ID == name && !v.expired():
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b Saved) int { return b.Used.Compare(a.Used) })
	return all
}

// names returns the names of saved sandboxes which begin so.
func (s *Store) names(begin string) (names []string) {
	found, _ := fs.Glob(os.DirFS(s.cfg.Dir), begin+"*"+savedSuffix)
	for _, file := range found {
		if name := strings.TrimSuffix(file, savedSuffix); ours.MatchString(name) {
			names = append(names, name)
		}
	}
	return names
}
