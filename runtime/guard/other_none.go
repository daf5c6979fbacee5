//go:build !linux

package guard

import "syscall"

// Others yields nothing: other processes can't be told apart here.
func Others(func(Other) bool) {}

// Args are none.
func (o Other) Args() []string { return nil }

func (o Other) mark() string { return "" }

// Program is not known.
func (o Other) Program() string { return "" }

// Ours is never certain.
func (o Other) Ours() bool { return false }

// Alive says no: there is none.
func (o Other) Alive() bool { return false }

// Signal finds nothing to signal.
func (o Other) Signal(syscall.Signal) error { return errNotThere }
