//go:build unix

package catalog

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a file belongs to the user that this process acts for.
func ours(about fs.FileInfo) bool {
	stat, ok := about.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
