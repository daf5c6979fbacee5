//go:build unix

package oauth

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a file for this descriptor; false where somebody has it locked.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}
