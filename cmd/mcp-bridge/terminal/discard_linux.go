package terminal

import "golang.org/x/sys/unix"

// discard drops what a terminal has that wasn't read.
func discard(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
