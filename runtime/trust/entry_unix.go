//go:build unix

package trust

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// System returns the owners of this machine's files.
func System() Owners {
	return Owners{Self: os.Geteuid(), Look: look, Private: private}
}

// look returns what the file system has at path.
func look(path string) (Entry, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return Entry{}, err
	}
	s, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return Entry{}, fmt.Errorf("the system doesn't say whose %s is", path)
	}
	e := Entry{Mode: fi.Mode(), UID: int(s.Uid), GID: int(s.Gid)}
	if e.Mode&fs.ModeSymlink != 0 {
		e.Target, err = os.Readlink(path)
	} else if e.Mode&0o022 != 0 && ofWindows(path) {
		e.Mode &^= 0o022 // such a drive has no permissions, and shows all of them
	} else if e.Mode&0o020 != 0 { // with an ACL these bits are what it lets any other user or group do
		e.Writers, err = aclWriters(path)
	}
	return e, err
}

// private reports whether a group is the user's primary one, has its name, and is no other user's.
// Its number may be another than the user's.
func private(gid int) bool {
	if gid != os.Getegid() {
		return false
	}
	u, err := user.Current()
	if err != nil {
		return false
	}
	groups, err := os.ReadFile("/etc/group")
	if err != nil {
		return false
	}
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return false
	}
	return onlyMember(string(groups), string(users), u.Username, gid)
}

// onlyMember reports whether a file such as /etc/group has a group of a user's name and this number
// without other members, and one such as /etc/passwd no other user whose primary group it is.
func onlyMember(groups, users, name string, gid int) bool {
	for line := range strings.Lines(users) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) == 7 && f[0] != name && f[3] == strconv.Itoa(gid) {
			return false
		}
	}
	for line := range strings.Lines(groups) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) == 4 && f[0] == name && f[2] == strconv.Itoa(gid) {
			return f[3] == "" || f[3] == name
		}
	}
	return false
}

// ofWindows reports whether path is on a drive of Windows that its Subsystem for Linux shows.
// Windows decides who may write there.
func ofWindows(path string) bool {
	const v9fs = 0x01021997
	return underWindows() && fileSystem(path) == v9fs
}

// underWindows reports whether this is the kernel of the Windows Subsystem for Linux.
var underWindows = sync.OnceValue(func() bool {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	return err == nil && strings.Contains(strings.ToLower(string(release)), "microsoft")
})
