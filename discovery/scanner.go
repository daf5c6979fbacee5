package discovery

import (
	"io/fs"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/hosts"
)

// A Scanner scans again and again, and remembers what files held. A file that can't be read or
// parsed any more, as while it is being edited, is a Problem, but what it held before still counts.
// One that is gone is gone. A project's files stay as they were at the first scan: those that were
// not there then are not there later. It is not for concurrent use.
type Scanner struct {
	fsys   fs.FS
	env    Env
	memory *config.Memory
}

// NewScanner returns a Scanner; fsys and env are those of Scan.
func NewScanner(fsys fs.FS, env Env) *Scanner {
	return &Scanner{fsys: fsys, env: env, memory: &config.Memory{}}
}

// Scan is the function Scan, with what is remembered.
func (c *Scanner) Scan() Catalog {
	s := newScan(c.fsys, c.env, c.memory)
	c.memory.StartWith(s.projectFiles())
	found := s.run()
	c.memory.Keep(s.Reader)
	return found
}

// projectFiles returns the files, and directories of files, that belong to the project and not to
// the user.
func (s *scan) projectFiles() []string {
	var users, found []string
	for _, h := range hosts.All {
		for _, f := range slices.Concat(h.Files, h.Settings) {
			if paths := s.Expand(f.Paths); f.InProject() {
				found = append(found, paths...)
			} else {
				users = append(users, paths...)
			}
		}
	}
	found = slices.DeleteFunc(found, func(p string) bool { return slices.Contains(users, p) })
	for i, p := range found {
		found[i], _ = s.Directory(p)
	}
	return found
}
