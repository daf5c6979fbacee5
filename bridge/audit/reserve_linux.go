package audit

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve makes the file system keep room behind the end of the file, which shows already now
// whether a later line can be written (fallocate(2)). File systems that can't are not asked twice.
func reserve(f *os.File, size, room int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, size, room)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
			return nil
		}
		return err
	}
}
