//go:build unix

package main

import (
	"syscall"
)

func sendSignal(pid int, s syscall.Signal) error { return syscall.Kill(pid, s) }
