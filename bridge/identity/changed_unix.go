//go:build linux || darwin

package identity

import (
	"time"

	"golang.org/x/sys/unix"
)

// changed returns when the inode at path was last changed, its owner, mode and content, which no
// program can set. It is the zero time where that can't be told.
func changed(path string) time.Time {
	var s unix.Stat_t
	if unix.Stat(path, &s) != nil {
		return time.Time{}
	}
	return time.Unix(s.Ctim.Unix())
}
