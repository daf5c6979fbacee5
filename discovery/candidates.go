package discovery

import (
	"io/fs"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// A Candidate is an entry of a file, as it is written and as Scan takes it.
type Candidate struct {
	Written config.Entry   // nothing of it is filled in
	Server  Server         // filled in as far as it can be
	Problem *Problem       // why it isn't used; nil for one that is, if only as another host's twin
	Inputs  []config.Input // of its file
}

// Candidates returns all entries that Scan reads and that are not malformed, in the order in which
// they count.
func Candidates(fsys fs.FS, env Env) []Candidate {
	s := newScan(fsys, env, nil)
	s.candidates = []Candidate{}
	s.run()
	return s.candidates
}

// candidate keeps an entry as it is written. The function that it returns keeps what became of it.
func (s *scan) candidate(f *config.File, e *config.Entry, shown string) func() {
	if s.candidates == nil {
		return func() {}
	}
	c := Candidate{Written: e.Clone()}
	root := s.Load(e.Source, f.Format.Strict, false).Root
	before := len(s.Problems)
	return func() {
		c.Server, c.Inputs = e.Server, config.Inputs(root)
		c.Written.Tools.Rules = e.Tools.Rules
		for i := before; i < len(s.Problems); i++ {
			if p := s.Problems[i]; p.Server == shown {
				c.Problem = &p
			}
		}
		s.candidates = append(s.candidates, c)
	}
}
