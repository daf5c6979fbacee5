package discovery

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/hosts"
)

// A Scanner scans again and again, and remembers what files held. A file that can't be read or
// parsed any more, as while it is being edited, is a Problem, but what it held before still counts.
// One that is gone is gone. A project's files are read by the first scan only: see startFiles. It
// is not for concurrent use.
type Scanner struct {
	fsys   *startFiles
	env    Env
	memory map[string]*config.Document // by path: as it last could be read
}

// NewScanner returns a Scanner; fsys and env are those of Scan.
func NewScanner(fsys fs.FS, env Env) *Scanner {
	return &Scanner{fsys: newStartFiles(fsys), env: env, memory: map[string]*config.Document{}}
}

// Scan is the function Scan, with what is remembered.
func (c *Scanner) Scan() Catalog {
	s := newScan(c.fsys, c.env, c.memory)
	if !c.fsys.over {
		c.fsys.project = s.projectFiles()
	}
	found := s.run()
	c.fsys.over = true
	s.Forget()
	return found
}

// projectSettings are files of a project that say which of its servers are approved.
var projectSettings = config.Everywhere("{workspace}/.claude/settings.json",
	"{workspace}/.claude/settings.local.json")

// projectFiles returns the files, and directories of files, that belong to the project and not to
// the user.
func (s *scan) projectFiles() []string {
	users := s.Expand(config.Everywhere("{claude}/settings.json"))
	found := s.Expand(projectSettings)
	for _, h := range hosts.All {
		for _, f := range h.Files {
			if paths := s.Expand(f.Paths); f.InProject() {
				found = append(found, paths...)
			} else {
				users = append(users, paths...)
			}
		}
	}
	found = slices.DeleteFunc(found, func(p string) bool { return slices.Contains(users, p) })
	for i, p := range found {
		dir, _ := s.directoryOf(p)
		found[i] = s.FSName(dir)
	}
	return found
}

// startFiles is a file system in which a project's files stay as they were at the first scan: those
// that were not there then are not there later. Code may write to the project while the bridge
// runs.
type startFiles struct {
	fs.FS
	project []string // names of files and directories
	over    bool     // the first scan is
	infos   map[string]result[fs.FileInfo]
	texts   map[string]result[[]byte]
	lists   map[string]result[[]fs.DirEntry]
}

type result[T any] struct {
	value T
	err   error
}

func newStartFiles(fsys fs.FS) *startFiles {
	return &startFiles{FS: fsys, infos: map[string]result[fs.FileInfo]{}, texts: map[string]result[[]byte]{},
		lists: map[string]result[[]fs.DirEntry]{}}
}

// kept reports whether name is of the project. What is a repository is decided at the start as
// well.
func (f *startFiles) kept(name string) bool {
	return path.Base(name) == ".git" ||
		slices.Contains(f.project, name) || slices.Contains(f.project, path.Dir(name))
}

// first returns what get gave at the first scan.
func first[T any](f *startFiles, known map[string]result[T], op, name string,
	get func() (T, error),
) (T, error) {
	if !f.kept(name) {
		return get()
	}
	r, ok := known[name]
	switch {
	case !ok && f.over:
		r.err = &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	case !ok:
		r.value, r.err = get()
		known[name] = r
	}
	return r.value, r.err
}

func (f *startFiles) Stat(name string) (fs.FileInfo, error) {
	return first(f, f.infos, "stat", name, func() (fs.FileInfo, error) { return fs.Stat(f.FS, name) })
}

func (f *startFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	return first(f, f.lists, "open", name, func() ([]fs.DirEntry, error) { return fs.ReadDir(f.FS, name) })
}

func (f *startFiles) Open(name string) (fs.File, error) {
	if !f.kept(name) {
		return f.FS.Open(name)
	}
	text, err := first(f, f.texts, "open", name, func() ([]byte, error) {
		file, err := f.FS.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return io.ReadAll(io.LimitReader(file, config.MaxFile+1))
	})
	if err != nil {
		return nil, err
	}
	return &startFile{bytes.NewReader(text), f, name}, nil
}

// startFile is an open file of startFiles.
type startFile struct {
	*bytes.Reader
	fsys *startFiles
	name string
}

func (f *startFile) Stat() (fs.FileInfo, error) { return f.fsys.Stat(f.name) }

func (f *startFile) Close() error { return nil }
