//go:build unix

package schemas

import (
	"io/fs"
	"os"
	"syscall"
)

// ours says whether a file belongs to the user that this process acts for. What can't be told is not ours.
func ours(about fs.FileInfo) bool {
	stat, ok := about.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
