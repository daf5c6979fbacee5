//go:build unix && !linux

package terminal

import "golang.org/x/sys/unix"

// discard drops what a terminal has that wasn't read.
func discard(fd int) {
	const read = 1 // FREAD
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, read)
}
