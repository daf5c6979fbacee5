package approvals

import (
	"io/fs"
	"os"
	"syscall"
	"time"
)

// changed returns when the inode was last changed, which is by the kernel's clock and can't be set.
func changed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Now()
}

// mine reports whether the user could write to it, or put something else into it: it is the user's,
// or others may too.
func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid() || info.Mode()&0o022 != 0
}
