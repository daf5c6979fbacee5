//go:build unix

package files

import "golang.org/x/sys/unix"

// writable returns why this process can't make files in a directory.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
