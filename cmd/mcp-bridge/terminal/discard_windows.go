package terminal

import "golang.org/x/sys/windows"

// discard drops what a terminal has that wasn't read.
func discard(fd int) { _ = windows.FlushConsoleInputBuffer(windows.Handle(fd)) }
