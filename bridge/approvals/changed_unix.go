//go:build linux || darwin

package approvals

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// changed returns when the inode at path was last changed, which is by the kernel's clock and can't
// be set. It is now where that can't be told.
func changed(path string) time.Time {
	var s unix.Stat_t
	if unix.Lstat(path, &s) != nil {
		return time.Now()
	}
	return time.Unix(s.Ctim.Unix())
}

// mine reports whether the user could write to it, or put something else into it: it is the user's,
// or others may too.
func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid() || info.Mode()&0o022 != 0
}
