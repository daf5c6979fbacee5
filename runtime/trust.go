package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// TrustedSocket says what speaks against a socket that the user has not named. Whoever listens there is given the user's code
// and answers for the engine, so it must be root's or the user's own, and nobody else may be able to put another in its place:
// the same holds for every directory and symbolic link on the way to it. A directory in which only a file's owner can rename it,
// as /tmp, is fine. On Windows, which has other means, nothing speaks against any.
//
// ACLs and mounts are not looked at.
func TrustedSocket(path string) error {
	if !posixOwners {
		return nil
	}
	_, err := walk(path, os.Geteuid(), lookAt)
	return err
}

// OwnRuntimeDir says what speaks against using dir, XDG_RUNTIME_DIR: it must be the user's own, and writable by nobody else. An
// error that is fs.ErrNotExist means that there is none. On Windows nothing speaks against any.
func OwnRuntimeDir(dir string) error {
	if !posixOwners {
		return nil
	}
	return ownDir(dir, os.Geteuid(), lookAt)
}

func ownDir(dir string, self int, look func(string) (entry, error)) error {
	e, err := walk(dir, self, look)
	switch {
	case err != nil:
		return err
	case !e.mode.IsDir():
		return fmt.Errorf("%s is no directory", dir)
	case e.uid != self:
		return fmt.Errorf("%s belongs to user %d and not to you", dir, e.uid)
	case e.mode&0o022 != 0:
		return fmt.Errorf("%s can be written to by others (its mode is %#o)", dir, e.mode.Perm())
	}
	return nil
}

// entry is what matters of a file, which itself is meant where it is a symbolic link.
type entry struct {
	mode     fs.FileMode
	uid, gid int
	target   string // of a symbolic link
}

// maxLinks is the kernel's own bound of symbolic links in one path.
const maxLinks = 40

// walk goes from the root to what path names, as the kernel does, and returns that. It stops where others than root and the user
// self could have had a hand in it.
func walk(path string, self int, look func(string) (entry, error)) (entry, error) {
	if !strings.HasPrefix(path, "/") {
		return entry{}, fmt.Errorf("%s is no absolute path", path)
	}
	at, rest, links := "/", strings.Split(path, "/"), 0
	e, err := look(at)
	for {
		if err != nil {
			return entry{}, err
		}
		if err := e.safe(at, self); err != nil {
			return entry{}, err
		}
		if e.mode&fs.ModeSymlink != 0 {
			if links++; links > maxLinks {
				return entry{}, errors.New(path + " has too many symbolic links")
			}
			rest = append(strings.Split(e.target, "/"), rest...)
			at = parent(at)
			if strings.HasPrefix(e.target, "/") {
				at = "/"
			}
		}
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		switch {
		case len(rest) == 0 && e.mode&fs.ModeSymlink == 0:
			return e, nil
		case len(rest) == 0: // a link to the root, or to its own directory
		case rest[0] == "..":
			at, rest = parent(at), rest[1:]
		default:
			at, rest = strings.TrimSuffix(at, "/")+"/"+rest[0], rest[1:]
		}
		e, err = look(at)
	}
}

func parent(path string) string { return path[:max(1, strings.LastIndexByte(path, '/'))] }

// safe says who else could have made what is at path, or could put something else there.
func (e entry) safe(path string, self int) error {
	const sticky = fs.ModeSticky
	switch {
	case e.uid != 0 && e.uid != self:
		return fmt.Errorf("%s belongs to user %d, who is neither you nor root", path, e.uid)
	case !e.mode.IsDir() || e.mode&sticky != 0:
		return nil
	case e.mode&0o002 != 0:
		return fmt.Errorf("%s can be written to by everybody, who could put another in the place of what is in it", path)
	case e.mode&0o020 != 0 && e.uid != 0 && e.gid != e.uid:
		// Who is in a group that root lets write, root has said. A group of the user's own number is the user's alone, as
		// systems make it.
		return fmt.Errorf("%s can be written to by its group %d, which could put another in the place of what is in it", path, e.gid)
	}
	return nil
}
