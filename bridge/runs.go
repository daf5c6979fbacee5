package bridge

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
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

	cost int64 // its size when it was kept: what can be read does not depend on how well it could be compressed
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

// packed is the same run with its output compressed.
func (r *keptRun) packed() *keptRun {
	return &keptRun{id: r.id, doc: r.doc.packed(), files: r.files, cost: r.cost}
}

// runs keeps what was last used within bounds: the run that nobody has read for the longest time goes first. It is safe for
// concurrent use. Its runs are those of all clients of the bridge; an id is 48 random bits.
type runs struct {
	maxBytes int64
	maxRuns  int

	packing sync.Mutex // held by whoever compresses: one at a time, since nobody waits for it

	mu    sync.Mutex
	kept  []*keptRun // the last used at the end
	bytes int64      // sum of their costs
}

func newRuns(maxBytes int64, maxRuns int) *runs { return &runs{maxBytes: maxBytes, maxRuns: maxRuns} }

// keep adds a run, of an id that was never used before, and gives up others for it. One that is larger than all the room there
// is, is not kept: then it says false.
func (s *runs) keep(r *keptRun) bool {
	n := r.size()
	if n > s.maxBytes {
		return false
	}
	r.cost = n
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.kept) > 0 && (s.bytes+n > s.maxBytes || len(s.kept) >= s.maxRuns) {
		s.bytes -= s.kept[0].cost
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	s.kept = append(s.kept, r)
	s.bytes += n
	return true
}

// pack compresses what a run printed, if it is still kept. That takes its time: it is for when the run's caller has been answered.
func (s *runs) pack(id string) {
	s.packing.Lock()
	defer s.packing.Unlock()
	before := s.peek(id)
	if before == nil {
		return
	}
	after := before.packed()
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.kept, before); i >= 0 {
		s.kept[i] = after
	}
}

// peek gives a run, which doesn't count as used, or nil.
func (s *runs) peek(id string) *keptRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.index(id); i >= 0 {
		return s.kept[i]
	}
	return nil
}

// index is called with mu held; -1 is nowhere.
func (s *runs) index(id string) int {
	return slices.IndexFunc(s.kept, func(r *keptRun) bool { return r.id == id })
}

// find gives a run and counts it as used just now.
func (s *runs) find(id string) (*keptRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.index(id)
	if i < 0 {
		return nil, s.missing(id)
	}
	r := s.kept[i]
	s.kept = append(slices.Delete(s.kept, i, i+1), r)
	return r, nil
}

// runFile is a file of a run.
type runFile struct {
	run  string
	file sandbox.Artifact
}

// files are those of the runs that are kept, the last used run first. That doesn't count as use.
func (s *runs) files() (all []runFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range slices.Backward(s.kept) {
		for _, f := range r.files {
			all = append(all, runFile{r.id, f})
		}
	}
	return all
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
		id, s.maxRuns, text.Size(s.maxBytes), there)}
}

// missingError says that something which could be read isn't there.
type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }
