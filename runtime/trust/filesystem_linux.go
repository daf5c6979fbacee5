package trust

import "syscall"

// fileSystem returns the kind of file system that path is on, zero where it can't be told.
func fileSystem(path string) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(path, &s) != nil {
		return 0
	}
	return int64(s.Type) //nolint:unconvert // it is 32 bits wide on some machines
}
