package bridge

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Bounds of what is kept of runs that are over. A run that was shown whole and handed over no file isn't kept.
const (
	maxKeptBytes = 64 << 20
	maxKeptRuns  = 64
)

// keptRun is what can still be read of a run that is over. Nothing changes it.
type keptRun struct {
	id    string
	doc   document
	files []sandbox.Artifact
}

// entryOverhead is what a run or a file counts beside its bytes.
const entryOverhead = 512

func (r *keptRun) size() int64 {
	n := r.doc.held() + entryOverhead
	for _, f := range r.files {
		n += int64(len(f.Data)+len(f.Name)+len(f.Mime)) + entryOverhead
	}
	return n
}

func (r *keptRun) file(name string) (sandbox.Artifact, bool) {
	for _, f := range r.files {
		if f.Name == name {
			return f, true
		}
	}
	return sandbox.Artifact{}, false
}

// runs keeps what was last used within bounds: the run that nobody has read for the longest time goes first. It is safe for
// concurrent use. Its runs are those of all clients of the bridge; an id is 48 random bits.
type runs struct {
	maxBytes int64
	maxRuns  int

	mu    sync.Mutex
	kept  []*keptRun // the last used at the end
	bytes int64
}

func newRuns(maxBytes int64, maxRuns int) *runs { return &runs{maxBytes: maxBytes, maxRuns: maxRuns} }

// keep adds a run, of an id that was never used before, and gives up others for it. One that is larger than all the room there
// is, is not kept: then it says false.
func (s *runs) keep(r *keptRun) bool {
	n := r.size()
	if n > s.maxBytes {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.kept) > 0 && (s.bytes+n > s.maxBytes || len(s.kept) >= s.maxRuns) {
		s.bytes -= s.kept[0].size()
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	s.kept = append(s.kept, r)
	s.bytes += n
	return true
}

// find gives a run and counts it as used just now.
func (s *runs) find(id string) (*keptRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.kept, func(r *keptRun) bool { return r.id == id })
	if i < 0 {
		return nil, s.missing(id)
	}
	r := s.kept[i]
	s.kept = append(slices.Delete(s.kept, i, i+1), r)
	return r, nil
}

// maxListedRuns is how many ids an error names.
const maxListedRuns = 10

// missing says which runs there are. It is called with mu held.
func (s *runs) missing(id string) error {
	var ids []string
	for _, r := range slices.Backward(s.kept) {
		ids = append(ids, r.id)
	}
	there := "none is kept now"
	if len(ids) > 0 {
		there = "kept now, the last used first: " + strings.Join(ids[:min(len(ids), maxListedRuns)], ", ")
	}
	if more := len(ids) - maxListedRuns; more > 0 {
		there += fmt.Sprintf(" and %d more", more)
	}
	return &missingError{fmt.Sprintf("nothing is kept of a run %.60q: only runs whose output was cut or that handed over files are kept, the last %d up to %s; %s; run the code again",
		id, s.maxRuns, size(s.maxBytes), there)}
}

// missingError says that something which could be read isn't there.
type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }
