// Package trust reports who beside the user and root could have written a file, or could put
// another in its place.
//
// It looks at the owner and the permission bits of the file and of each directory and symbolic link
// on the way to it, as the kernel follows them, and on Linux at their POSIX ACLs. Mounts and other
// ACLs are not looked at. A directory with the sticky bit, such as /tmp, is fine: only the owner of
// a file can replace it there. On Windows, where owners and bits say little, every file is trusted.
package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Owners knows whose files are. Its zero value trusts every file.
type Owners struct {
	Self    int                              // the user's number
	Look    func(path string) (Entry, error) // what is at path itself, where that is a symbolic link too
	Private func(gid int) bool               // is a group the user's alone? nil: none is
}

// Entry is what matters of a file.
type Entry struct {
	Mode     fs.FileMode
	UID, GID int
	Target   string // of a symbolic link
	Writers  []Writer
}

// A Writer is a user, or a group, that an ACL lets write beside the owner and the group of a file.
type Writer struct {
	Group bool
	ID    int
}

// An Error says which file or directory is not to be trusted, why, and what a person can type.
type Error struct {
	Path string
	Why  string // a clause whose subject is Path
	Fix  string // a clause
}

func (e *Error) Error() string { return e.Path + " " + e.Why }

// Hint returns the next step for a person.
func (e *Error) Hint() string { return e.Fix }

// Path returns who could put something else at path: a socket, which is given the user's code and
// answers for the engine, or a directory that a program makes another in. What the file itself
// permits is not looked at.
func (o Owners) Path(path string) error {
	_, err := o.walk(path)
	return err
}

// File returns why what a file says isn't the word of the user or root.
func (o Owners) File(path string) error {
	e, err := o.walk(path)
	switch {
	case err != nil || o.Look == nil:
		return err
	case e.Mode&0o002 != 0:
		return &Error{path, "can be written to by everybody", e.chmod("o-w", path, o.Self)}
	case e.Mode&0o020 != 0 && e.GID != 0 && !o.private(e.GID):
		return &Error{path, fmt.Sprintf("can be written to by its group %d", e.GID), e.chmod("g-w", path, o.Self)}
	}
	if bad := o.byACL(e, path, ""); bad != nil {
		return bad
	}
	return nil
}

// byACL returns who else an ACL lets write at path. what follows says what comes of it.
func (o Owners) byACL(e Entry, path, what string) *Error {
	for _, w := range e.Writers {
		kind := "user"
		switch {
		case w.ID == 0 || !w.Group && w.ID == o.Self || w.Group && o.private(w.ID):
			continue
		case w.Group:
			kind = "group"
		}
		who := fmt.Sprintf("%s:%d", kind, w.ID)
		return &Error{path, fmt.Sprintf("can be written to by %s %d, as its ACL says%s", kind, w.ID, what),
			e.command("setfacl -x "+who, path, o.Self)}
	}
	return nil
}

// Foreign reports whether what is at path belongs to another user, who isn't root either.
func (o Owners) Foreign(path string) bool {
	if o.Look == nil {
		return false
	}
	e, err := o.Look(path)
	return err == nil && e.UID != 0 && e.UID != o.Self
}

// OwnDirectory returns why a directory isn't the user's alone. An error that is fs.ErrNotExist
// means that there isn't one.
func (o Owners) OwnDirectory(dir string) error {
	e, err := o.walk(dir)
	switch {
	case err != nil || o.Look == nil:
		return err
	case !e.Mode.IsDir():
		return &Error{dir, "is no directory", "name a directory"}
	case e.UID != o.Self:
		return &Error{dir, fmt.Sprintf("belongs to user %d and not to you", e.UID), "use a directory of your own"}
	case e.Mode&0o022 != 0:
		why := fmt.Sprintf("can be written to by others (its mode is %#o)", e.Mode.Perm())
		return &Error{dir, why, e.chmod("go-w", dir, o.Self)}
	}
	return nil
}

// maxLinks is the kernel's own bound of symbolic links in one path.
const maxLinks = 40

// walk goes from the root to what path names, as the kernel does, and returns that. It stops where
// others than root and the user could have had a hand in it.
func (o Owners) walk(path string) (Entry, error) {
	if o.Look == nil {
		return Entry{}, nil
	}
	if !strings.HasPrefix(path, "/") {
		return Entry{}, fmt.Errorf("%s is no absolute path", path)
	}
	at, rest, links := "/", strings.Split(path, "/"), 0
	e, err := o.Look(at)
	for {
		if err != nil {
			return Entry{}, err
		}
		if bad := o.unsafe(e, at); bad != nil {
			return Entry{}, bad
		}
		if e.Mode&fs.ModeSymlink != 0 {
			if links++; links > maxLinks {
				return Entry{}, errors.New(path + " has too many symbolic links")
			}
			rest = append(strings.Split(e.Target, "/"), rest...)
			at = parent(at)
			if strings.HasPrefix(e.Target, "/") {
				at = "/"
			}
		}
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		switch {
		case len(rest) == 0 && e.Mode&fs.ModeSymlink == 0:
			return e, nil
		case len(rest) == 0: // a link to the root, or to its own directory
		case rest[0] == "..":
			at, rest = parent(at), rest[1:]
		default:
			at, rest = strings.TrimSuffix(at, "/")+"/"+rest[0], rest[1:]
		}
		e, err = o.Look(at)
	}
}

func parent(path string) string { return path[:max(1, strings.LastIndexByte(path, '/'))] }

// unsafe returns who else could have made what is at path, or could put something else there.
func (o Owners) unsafe(e Entry, path string) *Error {
	const replace = ": another could be put in the place of what is in it"
	switch {
	case e.UID != 0 && e.UID != o.Self:
		return &Error{path, fmt.Sprintf("belongs to user %d, who is neither you nor root", e.UID),
			"if you trust what it says, copy it to a place that is yours"}
	case !e.Mode.IsDir() || e.Mode&fs.ModeSticky != 0:
		return nil
	case e.Mode&0o002 != 0:
		fix := "o-w"
		if e.UID != o.Self {
			fix = "+t" // others may need to write there, as in /tmp
		}
		return &Error{path, "can be written to by everybody" + replace, e.chmod(fix, path, o.Self)}
	case e.Mode&0o020 != 0 && e.UID != 0 && !o.private(e.GID):
		// Root has said who is in a group that may write to its directories.
		why := fmt.Sprintf("can be written to by its group %d", e.GID) + replace
		return &Error{path, why, e.chmod("g-w", path, o.Self)}
	case e.UID != 0:
		return o.byACL(e, path, replace)
	}
	return nil
}

// private reports whether the user is a group's only member. Most systems make such a group for
// each user and let it write to all that the user makes; others may have been added to it.
func (o Owners) private(gid int) bool { return o.Private != nil && o.Private(gid) }

// chmod returns the command that takes a permission away, for who may type it.
func (e Entry) chmod(what, path string, self int) string {
	return e.command("chmod "+what, path, self)
}

// command returns a command for a path, for who may type it.
func (e Entry) command(command, path string, self int) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !isPlain(r) }) {
		path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	command += " " + path
	if e.UID != self {
		command = "sudo " + command
	}
	return command
}

// isPlain reports whether a character means nothing else to a shell.
func isPlain(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' ||
		strings.ContainsRune("/._-+@%,:=", r)
}
