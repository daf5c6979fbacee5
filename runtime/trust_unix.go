//go:build unix

package runtime

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const posixOwners = true

// lookAt is what the file system has at path.
func lookAt(path string) (entry, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return entry{}, err
	}
	s, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return entry{}, fmt.Errorf("the system doesn't say whose %s is", path)
	}
	e := entry{mode: fi.Mode(), uid: int(s.Uid), gid: int(s.Gid)}
	if fi.Mode()&fs.ModeSymlink != 0 {
		e.target, err = os.Readlink(path)
	}
	return e, err
}
