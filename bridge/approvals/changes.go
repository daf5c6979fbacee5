package approvals

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxLinks bounds the symbolic links on the way to a file, as the kernel does.
const maxLinks = 40

// changes returns the times at which what the files are was last changed by a program with the
// user's rights: their content, and every link and directory on the way that could be put in the
// place of another one. Of a file that isn't there it is the time of the last change to what is
// left of the way: it may have been removed.
func changes(files []string) []time.Time {
	var all []time.Time
	for _, f := range files {
		all = way(all, filepath.Clean(f))
	}
	return all
}

// way adds the times of one path. It follows links as the kernel does: ".." in a link's target is
// the parent of what the names before it lead to.
func way(all []time.Time, path string) []time.Time {
	at, rest := root(path), names(path[len(filepath.VolumeName(path)):])
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		parent, err := os.Lstat(at)
		if err != nil {
			return append(all, time.Now())
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			if mine(parent) {
				all = append(all, changed(at))
			}
			return all
		}
		if mine(parent) || mine(info) && !info.IsDir() {
			all = append(all, changed(next))
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return append(all, time.Now())
		}
		if filepath.IsAbs(target) {
			at, target = root(target), target[len(filepath.VolumeName(target)):]
		}
		rest = append(names(target), rest...)
	}
	return all
}

func root(path string) string { return filepath.VolumeName(path) + string(filepath.Separator) }

func names(path string) []string { return strings.Split(filepath.ToSlash(path), "/") }
