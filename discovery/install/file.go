package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
)

// A FileError is why a file isn't changed.
type FileError struct{ Path, Why, Next string }

func (e *FileError) Error() string { return config.Show(e.Path) + " " + e.Why }

// Hint returns the next step for a person.
func (e *FileError) Hint() string { return e.Next }

// A File is one that is to be changed, as it was read.
type File struct {
	Path   string
	New    []byte // what it is to hold
	Remove bool   // it is to be removed

	host, scope string
	old         []byte
	info        fs.FileInfo // nil for a missing file
	changes     []fileChange
	hunks       []hunk
}

// A fileChange is a change, and the move that it is a part of; nil for none. With the path of an
// entry, the change is made only while the file has the entry as it was.
type fileChange struct {
	edit.Change
	move  *Move
	entry []string
	was   config.Value
}

// Open reads a file that may be missing. It refuses what it could not replace later: a link, what
// is no regular file, what can't be written, and what belongs to another user.
func Open(path string) (*File, error) {
	f := &File{Path: path}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, ownDirectory(path)
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, &FileError{path, "is a link, and links are not followed",
			"change the file that it leads to by hand; mcp-bridge install --print shows how"}
	case !info.Mode().IsRegular():
		return nil, &FileError{path, "is not a regular file", "move it away"}
	case info.Mode()&0o200 == 0:
		return nil, &FileError{path, "is read-only", "make it writable: chmod u+w"}
	case info.Size() > config.MaxFile:
		return nil, &FileError{path, fmt.Sprintf("is larger than %d KiB", config.MaxFile>>10),
			"make the change by hand"}
	}
	if !own(info) {
		return nil, &FileError{path, "belongs to another user", "run the command as that user"}
	}
	if f.old, err = os.ReadFile(path); err != nil {
		return nil, err
	}
	f.info, f.New = info, f.old
	return f, nil
}

// ownDirectory refuses a path whose directory, or the nearest one above it, is another user's.
func ownDirectory(path string) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case err == nil && own(info):
			return nil
		case err == nil:
			return &FileError{dir, "belongs to another user", "run the command as that user"}
		case !errors.Is(err, fs.ErrNotExist), dir == filepath.Dir(dir):
			return err
		}
	}
}

// look reads a file that is only to be shown, whatever it is.
func look(path string) (*File, error) {
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{Path: path}, nil
	} else if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	return &File{Path: path, old: old, New: old, info: info}, err
}

// Change makes a change in what the file is to hold.
func (f *File) Change(c edit.Change) error { return f.apply(fileChange{Change: c}) }

func (f *File) apply(c fileChange) error {
	if c.entry != nil {
		root, err := edit.Parse(f.Path, f.New)
		if is, _ := edit.At(root, c.entry); err == nil && !is.Equal(c.was) {
			return f.errChanged()
		}
	}
	made, err := edit.Apply(f.Path, f.New, c.Change)
	if err != nil {
		if bad, ok := errors.AsType[*edit.Error](err); ok {
			return &FileError{f.Path, "can't be changed: " + bad.Reason, bad.Next}
		}
		return err
	}
	if bytes.Equal(made, f.New) && f.info != nil {
		return nil
	}
	f.hunks = append(f.hunks, f.hunkOf(c, f.New, made))
	f.New, f.changes = made, append(f.changes, c)
	return nil
}

// Changed reports whether there is anything to write.
func (f *File) Changed() bool { return f.Remove || f.info == nil || !bytes.Equal(f.New, f.old) }

// Moves returns the servers whose moves the file's changes are a part of.
func (f *File) Moves() (all []*Move) {
	for _, c := range f.changes {
		if c.move != nil && !slices.Contains(all, c.move) {
			all = append(all, c.move)
		}
	}
	return all
}

// refresh reads the file again, since its host may write it all the time. What is to be changed in
// it has to be the same as before, line by line.
func (f *File) refresh() error {
	now, err := Open(f.Path)
	if err != nil {
		return err
	}
	if (now.info == nil) == (f.info == nil) && bytes.Equal(now.old, f.old) {
		return nil
	}
	if f.Remove || len(f.changes) == 0 {
		return f.errChanged()
	}
	for _, c := range f.changes {
		if err := now.apply(c); err != nil {
			return err
		}
	}
	if !slices.Equal(texts(now.hunks), texts(f.hunks)) {
		return f.errChanged()
	}
	now.host, now.scope = f.host, f.scope
	*f = *now
	return nil
}

// errChanged means that another program was faster.
func (f *File) errChanged() error {
	return &FileError{f.Path, "was changed by another program meanwhile, and is left as that wrote it",
		"run the command again"}
}

// replace writes New in the place of the file, or removes it: readers see the old content or the
// new one, at any moment and after a crash. It refuses if the file isn't what was read.
func (f *File) replace() (err error) {
	if f.Remove {
		if err := f.unchanged(); err != nil {
			return err
		}
		return os.Remove(f.Path)
	}
	mode := fs.FileMode(0o600)
	if f.info != nil {
		mode = f.info.Mode().Perm()
	}
	temp := filepath.Join(filepath.Dir(f.Path), "."+filepath.Base(f.Path)+".mcp-bridge-new")
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // left by a command that was killed
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp)
		}
	}()
	if err := writeNew(temp, f.New, mode, f.info); err != nil {
		return fmt.Errorf("%s was left as it was: %w", config.Show(f.Path), err)
	}
	if err := f.unchanged(); err != nil {
		return err
	}
	if f.info == nil {
		// A link is made only where there is no file, so none is lost that came meanwhile.
		if err := os.Link(temp, f.Path); errors.Is(err, fs.ErrExist) {
			return f.errChanged()
		} else if err == nil {
			syncDirectory(f.Path)
			return os.Remove(temp)
		}
	}
	if err := os.Rename(temp, f.Path); err != nil {
		return err
	}
	syncDirectory(f.Path)
	return nil
}

// unchanged returns an error unless the file is as it was read.
func (f *File) unchanged() error {
	info, err := os.Lstat(f.Path)
	if f.info == nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return f.errChanged()
	}
	if err != nil || !info.Mode().IsRegular() {
		return f.errChanged()
	}
	if now, err := os.ReadFile(f.Path); err != nil || !bytes.Equal(now, f.old) {
		return f.errChanged()
	}
	return nil
}

// writeNew writes a file that isn't there yet, to the disk, with the group of like.
func writeNew(path string, content []byte, mode fs.FileMode, like fs.FileInfo) error {
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, bytes.NewReader(content))
	if err == nil && like != nil {
		err = keepGroup(w, like)
		if errors.Is(err, fs.ErrPermission) && mode>>3&7 == mode&7 {
			err = nil // the group may do what others may
		} else if errors.Is(err, fs.ErrPermission) {
			err = errors.New("you aren't in the file's group, so it can't be written again with that group; " +
				"give it a group of yours by chgrp")
		}
	}
	if err == nil {
		err = w.Chmod(mode)
	}
	if err == nil {
		err = w.Sync()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// syncDirectory has the disk know a new name, where the system can.
func syncDirectory(path string) {
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// makeDirectories makes the directories that a file's path lacks, and returns them, innermost
// first.
func makeDirectories(path string) (made []string, err error) {
	dir := filepath.Dir(path)
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		made = append(made, d)
	}
	return made, os.MkdirAll(dir, 0o700)
}
