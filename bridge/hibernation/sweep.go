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

// crop removes the oldest sandboxes of each owner beyond PerOwner, and while all take more than
// MaxTotal the oldest of the owner whose sandboxes take most. What a bridge has in use stays.
func (s *Store) crop() {
	type file struct {
		name string
		at   time.Time
		size int64
	}
	owners, takes, total := map[string][]file{}, map[string]int64{}, int64(0) // by the prefix of their names
	for _, name := range s.names("") {
		if info, err := os.Stat(s.path(name) + savedSuffix); err == nil {
			owner, size := name[:strings.IndexByte(name, '-')], info.Size()
			owners[owner] = append(owners[owner], file{name, info.ModTime(), size})
			takes[owner] += size
			total += size
		}
	}
	removeOldest := func(owner string) {
		f := owners[owner][0]
		owners[owner] = owners[owner][1:]
		takes[owner] -= f.size
		total -= f.size
		s.unless(f.name, 0, func() { _ = os.Remove(s.path(f.name) + savedSuffix) })
	}
	for owner, files := range owners {
		slices.SortFunc(files, func(a, b file) int { return a.at.Compare(b.at) })
		for len(owners[owner]) > PerOwner {
			removeOldest(owner)
		}
	}
	for total > s.most {
		var greatest string
		for owner, size := range takes {
			if size > takes[greatest] {
				greatest = owner
			}
		}
		removeOldest(greatest)
	}
}

func modified(e fs.DirEntry) time.Time {
	info, err := e.Info()
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}
