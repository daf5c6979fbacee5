package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Check returns why files could not be written now, or nil. It writes nothing.
func (s *Store) Check() error {
	dir := s.dir
	about, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir { // Keep makes what is missing
		dir = filepath.Dir(dir)
		about, err = os.Stat(dir)
	}
	switch {
	case err != nil:
		return err
	case !about.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case dir == s.dir && exposed(about):
		return exposedError(dir, about)
	}
	if err := writable(dir); err != nil {
		return fmt.Errorf("you can't write to %s: %w", dir, err)
	}
	return nil
}

// Check returns why files can't be read now, an error for each directory that can't be used.
func (in *Inputs) Check() (problems []error) {
	for _, dir := range in.dirs {
		if err := listable(dir); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// listable reports whether a directory can be read.
func listable(dir string) error {
	about, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no directory %s", dir)
	case err != nil:
		return err
	case !about.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		_, err = os.Lstat(filepath.Join(dir, names[0])) // fails where the directory can't be searched
	}
	if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
		return nil
	}
	return err
}
