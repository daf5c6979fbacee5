package hibernation

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// unfinished returns how the names of files begin that are to become a sandbox's.
func unfinished(name string) string { return "." + name + ".new-" }

// sweep removes the files that are too old, and what killed bridges have left of files that they
// hadn't finished. What a bridge has in use stays, and so does what is not ours.
func (s *Store) sweep() {
	entries, _ := os.ReadDir(s.cfg.Dir)
	for _, e := range entries {
		file := e.Name()
		switch name, isSaved := strings.CutSuffix(file, savedSuffix); {
		case strings.HasPrefix(file, ".") && strings.Contains(file, ".new-"):
			name := file[1:strings.LastIndex(file, ".new-")] // a replica's name may be new-1
			if !ours.MatchString(name) {
				continue
			}
			s.unless(name, 0, func() { _ = os.Remove(filepath.Join(s.cfg.Dir, file)) })
		case strings.HasSuffix(file, lockSuffix):
			if name := strings.TrimSuffix(file, lockSuffix); ours.MatchString(name) {
				s.unless(name, 0, func() {}) // which leaves those that say what was lost
			}
		case isSaved && ours.MatchString(name) && time.Since(modified(e)) > MaxAge:
			s.unless(name, 0, func() { _ = os.Remove(filepath.Join(s.cfg.Dir, file)) })
		}
	}
}

// saved reports whether there is the file of a sandbox.
func (s *Store) saved(name string) bool {
	_, err := os.Stat(s.path(name) + savedSuffix)
	return err == nil
}

// unless calls do unless a bridge has a sandbox in use for longer than patience.
func (s *Store) unless(name string, patience time.Duration, do func()) {
	c := &Claim{store: s, name: name}
	if c.lock(patience) != nil {
		return
	}
	do()
	c.Lost = c.Lost && s.saved(name)
	c.Drop()
}

// crop removes the oldest sandboxes of an owner beyond PerOwner.
func (s *Store) crop(begin string) {
	names := s.names(begin)
	at := map[string]time.Time{}
	for _, name := range names {
		if info, err := os.Stat(s.path(name) + savedSuffix); err == nil {
			at[name] = info.ModTime()
		}
	}
	slices.SortFunc(names, func(a, b string) int { return at[a].Compare(at[b]) })
	for _, name := range names[:max(0, len(names)-PerOwner)] {
		s.unless(name, 0, func() { _ = os.Remove(s.path(name) + savedSuffix) })
	}
}

func modified(e fs.DirEntry) time.Time {
	info, err := e.Info()
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}
