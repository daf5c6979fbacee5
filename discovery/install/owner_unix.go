//go:build unix

package install

import (
	"io/fs"
	"os"
	"syscall"
)

// own reports whether a file is of the user that runs this process. As root it isn't enough to be
// allowed to write: what root makes in a user's directories the user can't change.
func own(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}

// keepGroup gives a file the group of another.
func keepGroup(w *os.File, like fs.FileInfo) error {
	s, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return w.Chown(-1, int(s.Gid))
}
