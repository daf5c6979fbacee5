//go:build unix && !linux

package trust

// fileSystem returns zero: only the Windows Subsystem for Linux is asked about it.
func fileSystem(string) int64 { return 0 }

// aclWriters returns nothing: the ACLs of this system are not looked at.
func aclWriters(string) ([]Writer, error) { return nil, nil }
