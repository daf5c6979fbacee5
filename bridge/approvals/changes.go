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

// changes returns the times at which what the files are was last changed by somebody with the
// user's rights: their content, and every link and directory on the way that could be put in the
// place of another one. Of a file that isn't there it is the time of the last change to what is
// left of the way: it may have been removed.
func changes(files []string) []time.Time {
	var all []time.Time
	for _, f := range files {
		all = way(all, filepath.Clean(f), maxLinks)
	}
	return all
}

// way adds the times of one path.
func way(all []time.Time, path string, links int) []time.Time {
	volume := filepath.VolumeName(path)
	at := volume + string(filepath.Separator)
	parent, err := os.Lstat(at)
	if err != nil || links == 0 {
		return append(all, time.Now())
	}
	rest := strings.Split(strings.TrimPrefix(path[len(volume):], string(filepath.Separator)), string(filepath.Separator))
	for i, name := range rest {
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			if mine(parent) {
				all = append(all, changed(parent))
			}
			return all
		}
		if mine(parent) || mine(info) && !info.IsDir() {
			all = append(all, changed(info))
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(next)
			if err != nil {
				return append(all, time.Now())
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(at, target)
			}
			return way(all, filepath.Join(append([]string{target}, rest[i+1:]...)...), links-1)
		}
		at, parent = next, info
	}
	return all
}
