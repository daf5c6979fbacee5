package trust

import (
	"encoding/binary"
	"errors"
	"syscall"
)

// fileSystem returns the kind of file system that path is on, zero where it can't be told.
func fileSystem(path string) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(path, &s) != nil {
		return 0
	}
	return int64(s.Type) //nolint:unconvert // it is 32 bits wide on some machines
}

// Of an ACL as the kernel gives it: a version, then entries of a tag, permissions and an ID.
const (
	aclHeader, aclEntry                  = 4, 8 // bytes
	aclUser, aclGroup, aclMask, mayWrite = 0x02, 0x08, 0x10, 2
)

// aclWriters returns the users and groups that the ACL of a file names and lets write.
func aclWriters(path string) (writers []Writer, err error) {
	text := make([]byte, 64<<10) // the most that an attribute holds
	n, err := syscall.Getxattr(path, "system.posix_acl_access", text)
	if errors.Is(err, syscall.ENODATA) || errors.Is(err, syscall.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	masked := false
	for at := aclHeader; at+aclEntry <= n; at += aclEntry {
		tag, may := binary.LittleEndian.Uint16(text[at:]), binary.LittleEndian.Uint16(text[at+2:])
		if may&mayWrite == 0 {
			masked = masked || tag == aclMask
		} else if tag == aclUser || tag == aclGroup {
			id := int(binary.LittleEndian.Uint32(text[at+4:]))
			writers = append(writers, Writer{Group: tag == aclGroup, ID: id})
		}
	}
	if masked {
		return nil, nil
	}
	return writers, nil
}
