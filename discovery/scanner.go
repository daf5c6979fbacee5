package discovery

import "io/fs"

// A Scanner scans again and again, and remembers what files held. A file that can't be read or parsed any more, as while
// somebody edits it, is a Problem, but what it held before still counts. One that is gone is gone. A project's files are read by
// the first scan only: see startFiles. It is not for concurrent use.
type Scanner struct {
	fsys   *startFiles
	env    Env
	memory map[string]*file // by path: as it last could be read
}

// NewScanner makes one; fsys and env are those of Scan.
func NewScanner(fsys fs.FS, env Env) *Scanner {
	return &Scanner{fsys: newStartFiles(fsys), env: env, memory: map[string]*file{}}
}

// Scan is the function Scan, with what is remembered.
func (c *Scanner) Scan() Catalog {
	s := newScan(c.fsys, c.env)
	s.memory = c.memory
	if !c.fsys.over {
		c.fsys.project = s.projectFiles()
	}
	catalog := s.run()
	c.fsys.over = true
	for p := range c.memory { // what wasn't looked at, or is gone
		if f := s.files[p]; f == nil || f.root == nil {
			delete(c.memory, p)
		}
	}
	return catalog
}

// remember keeps a file as it is, or, where it is broken, takes it as it was. It says whether it did that.
func (s *scan) remember(path string, f *file) bool {
	if s.memory == nil {
		return false
	}
	if !f.broken {
		s.memory[path] = f
		return false
	}
	old := s.memory[path]
	if old == nil || old.root == nil {
		return false
	}
	f.root, f.rules, f.standard = old.root, old.root, old.standard
	return true
}
