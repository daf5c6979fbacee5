package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Write writes the files that a run handed over into a directory, which is made when it isn't
// there, and gives their paths by name. It writes nowhere else, follows no link out of the
// directory, and replaces no file: those that it can't write are told in the error, and the others
// are written all the same.
func Write(dir string, files []sandbox.Artifact) (map[string]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("the directory for the files can't be made: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it itself
	return write(root, dir, files, modes{dir: 0o755, file: 0o644})
}

// modes are the permissions of what is made.
type modes struct{ dir, file fs.FileMode }

// write writes files into root, which is the directory dir.
func write(root *os.Root, dir string, files []sandbox.Artifact, m modes) (map[string]string, error) {
	paths := map[string]string{}
	var errs []error
	for _, f := range files {
		err := writeNew(root, f, m)
		switch {
		case errors.Is(err, fs.ErrExist):
			errs = append(errs, fmt.Errorf("%s is in %s already and was left as it is", f.Name, dir))
		case errors.Is(err, syscall.ENOSPC):
			return paths, errors.Join(append(errs, fmt.Errorf("%s could not be written: the disk is full", f.Name))...)
		case err != nil:
			errs = append(errs, fmt.Errorf("%s could not be written: %w", f.Name, err))
		default:
			paths[f.Name] = filepath.Join(dir, filepath.FromSlash(f.Name))
		}
	}
	return paths, errors.Join(errs...)
}

func writeNew(root *os.Root, f sandbox.Artifact, m modes) error {
	if err := root.MkdirAll(path.Dir(f.Name), m.dir); err != nil {
		return err
	}
	file, err := root.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, m.file)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Data)
	if err = errors.Join(err, file.Close()); err != nil {
		err = errors.Join(err, root.Remove(f.Name)) // no part of a file under its name
	}
	return err
}
