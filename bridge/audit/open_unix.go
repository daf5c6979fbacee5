//go:build unix

package audit

import "syscall"

// noFollow has no symbolic link opened.
const noFollow = syscall.O_NOFOLLOW
