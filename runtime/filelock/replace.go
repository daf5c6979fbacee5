package filelock

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Replace writes a file of mode 0600 so that readers see the old content or the new one, after a
// crash or a power cut too. It writes the content to a file beside it first, whose name pattern
// gives as in os.CreateTemp. A process that is killed meanwhile leaves that file behind: see
// Sweep.
func Replace(path, pattern string, content ...[]byte) error {
	return ReplaceBy(path, pattern, func(w io.Writer) (err error) {
		for _, part := range content {
			if err == nil {
				_, err = w.Write(part)
			}
		}
		return err
	})
}

// ReplaceBy does what Replace does with what write writes. If that fails, the old content stays.
func ReplaceBy(path, pattern string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), pattern)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // not every system can
		_ = dir.Close()
	}
	return nil
}

// unfinished is how old a file is that no process writes any more.
const unfinished = time.Hour

// Sweep removes from a directory what Replace has left there of a pattern, an hour later. What it
// can't remove stays.
func Sweep(dir, pattern string) {
	before, after, _ := strings.Cut(pattern, "*")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		number, begins := strings.CutPrefix(e.Name(), before)
		number, ends := strings.CutSuffix(number, after)
		if !begins || !ends || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > unfinished {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
