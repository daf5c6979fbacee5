package output

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Bounds of what a Store of NewStore keeps.
const (
	maxKeptBytes = 64 << 20
	maxKeptRuns  = 64
)

// kept is what can still be read of a run that is over. Nothing changes it.
type kept struct {
	id    string
	text  string
	files []sandbox.Artifact
}

// entryOverhead is what a run or a file counts beside its bytes.
const entryOverhead = 512

func (r *kept) size() int64 {
	n := int64(len(r.text)) + entryOverhead
	for _, f := range r.files {
		n += int64(len(f.Data)+len(f.Name)+len(f.Mime)) + entryOverhead
	}
	return n
}

// A Store keeps the output that wasn't shown and the files of the last runs of all clients. An id
// of a run is 48 random bits. Beyond its bounds, the run that was not read for the longest time
// goes first. It is safe for concurrent use.
type Store struct {
	maxBytes int64
	maxRuns  int

	mu    sync.Mutex
	runs  []*kept // the last used at the end
	bytes int64   // sum of their sizes
}

// NewStore returns an empty Store of at most 64 runs and 64 MiB.
func NewStore() *Store { return &Store{maxBytes: maxKeptBytes, maxRuns: maxKeptRuns} }

// keep adds a run and drops others for it. It reports false for a run that is larger than the
// Store.
func (s *Store) keep(r *kept) bool {
	n := r.size()
	if n > s.maxBytes {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.runs) > 0 && (s.bytes+n > s.maxBytes || len(s.runs) >= s.maxRuns) {
		s.bytes -= s.runs[0].size()
		s.runs = slices.Delete(s.runs, 0, 1)
	}
	s.runs = append(s.runs, r)
	s.bytes += n
	return true
}

// KeepText keeps what a command printed, for read_output. It reports false for what is too long.
func (s *Store) KeepText(id, stdout, stderr string) bool {
	all, _ := joined(stdout, stderr)
	return s.keep(&kept{id: id, text: all})
}

// find returns a run, which counts as read now.
func (s *Store) find(id string) (*kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.runs, func(r *kept) bool { return r.id == id })
	if i < 0 {
		return nil, s.missing(id)
	}
	r := s.runs[i]
	s.runs = append(slices.Delete(s.runs, i, i+1), r)
	return r, nil
}

// maxListedRuns is how many ids an error names.
const maxListedRuns = 10

// missing returns an error that names the runs there are. The caller holds mu.
func (s *Store) missing(id string) error {
	var ids []string
	for _, r := range slices.Backward(s.runs) {
		ids = append(ids, r.id)
	}
	there := "none is kept now"
	if len(ids) > 0 {
		there = "kept now, the last used first: " + strings.Join(ids[:min(len(ids), maxListedRuns)], ", ")
	}
	if more := len(ids) - maxListedRuns; more > 0 {
		there += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("nothing is kept of a run %.60q: only runs whose output was cut or that handed over "+
		"files are kept, the last %d up to %s; %s; run the code again", id, s.maxRuns, text.Size(s.maxBytes), there)
}
