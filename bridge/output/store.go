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
	owner string
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

// A Store keeps the output that wasn't shown and the files of the last runs of all principals. An
// id of a run is 48 random bits. Beyond its bounds, the principal that has the most gives up the
// run that it has not read for the longest time. It is safe for concurrent use.
type Store struct {
	maxBytes int64
	maxRuns  int

	mu    sync.Mutex
	runs  []*kept // the last used at the end
	bytes int64   // sum of their sizes
}

// NewStore returns an empty Store of at most 64 runs and 64 MiB.
func NewStore() *Store { return &Store{maxBytes: maxKeptBytes, maxRuns: maxKeptRuns} }

// A View is what one principal has in a Store. To it, there is nothing else in there.
type View struct {
	store *Store
	owner string
}

// Of returns the view of a principal.
func (s *Store) Of(principal string) View { return View{s, principal} }

// keep adds a run and drops others for it. It reports false for a run that is larger than the
// Store.
func (v View) keep(r *kept) bool {
	s, n := v.store, r.size()
	if n > s.maxBytes {
		return false
	}
	r.owner = v.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.bytes+n > s.maxBytes || len(s.runs) >= s.maxRuns {
		if !s.dropFor(r) {
			return false
		}
	}
	s.runs = append(s.runs, r)
	s.bytes += n
	return true
}

// KeepText keeps what a command printed, for read_output. It reports false for what is too long.
func (v View) KeepText(id, stdout, stderr string) bool {
	all, _ := joined(stdout, stderr)
	return v.keep(&kept{id: id, text: all})
}

// dropFor drops the oldest run of the principal that has the most of what is short: runs, or bytes.
// It reports false where that is the one whose run is to come, with that run alone. The caller
// holds mu.
func (s *Store) dropFor(coming *kept) bool {
	short := (*kept).size
	if len(s.runs) >= s.maxRuns {
		short = func(*kept) int64 { return 1 }
	}
	has := map[string]int64{coming.owner: short(coming)}
	for _, r := range s.runs {
		has[r.owner] += short(r)
	}
	oldest := -1
	for i, r := range s.runs {
		if oldest < 0 || has[r.owner] > has[s.runs[oldest].owner] {
			oldest = i
		}
	}
	if oldest < 0 || has[coming.owner] > has[s.runs[oldest].owner] {
		return false
	}
	s.bytes -= s.runs[oldest].size()
	s.runs = slices.Delete(s.runs, oldest, oldest+1)
	return true
}

// find returns a run, which counts as read now.
func (v View) find(id string) (*kept, error) {
	s := v.store
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.runs, func(r *kept) bool { return r.id == id && r.owner == v.owner })
	if i < 0 {
		return nil, v.missing(id)
	}
	r := s.runs[i]
	s.runs = append(slices.Delete(s.runs, i, i+1), r)
	return r, nil
}

// maxListedRuns is how many ids an error names.
const maxListedRuns = 10

// missing returns an error that names the runs there are. The caller holds mu.
func (v View) missing(id string) error {
	s := v.store
	var ids []string
	for _, r := range slices.Backward(s.runs) {
		if r.owner == v.owner {
			ids = append(ids, r.id)
		}
	}
	there := "none is kept now"
	if len(ids) > 0 {
		there = "kept now, the last used first: " + strings.Join(ids[:min(len(ids), maxListedRuns)], ", ")
	}
	if more := len(ids) - maxListedRuns; more > 0 {
		there += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("nothing is kept of a run %.60q%s: only runs whose output was cut or that handed over "+
		"files are kept, the last %d up to %s; %s; run the code again", id,
		text.DidYouMean(text.First(id, 60), ids), s.maxRuns, text.Size(s.maxBytes), there)
}
