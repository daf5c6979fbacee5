package approvals

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

const (
	maxRecord = 4 << 20 // bytes of the file
	maxKnown  = 5000    // definitions; those that were there longest ago go first
	maxSpans  = 200     // of time; the oldest are joined
)

// state is what is known: by itself what other bridges are told.
type state struct {
	Known  map[string]string `json:"known"`  // by ID of a definition that was let in: the day it was last there
	Served spans             `json:"served"` // when code was run

	// Grants are what the user has allowed for good. Policies are, by path of a policy file, the
	// SHA-256 of what is trusted. Copies share both, so neither is changed in place.
	Grants   []policy.Grant    `json:"grants,omitempty"`
	Policies map[string]string `json:"policies,omitempty"`
}

// record is the file.
type record struct {
	state
	Serving time.Time `json:"serving,omitzero"` // since when code is run; zero: none is
	Killed  bool      `json:"killed,omitempty"` // it was, until this was written
}

// span is a stretch of time, both ends included.
type span struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

type spans []span

// joined returns spans in order, none of which touch, and not too many.
func (all spans) joined() spans {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b span) int { return a.From.Compare(b.From) })
	var out spans
	for _, s := range all {
		if last := len(out) - 1; last >= 0 && !s.From.After(out[last].Until) {
			if s.Until.After(out[last].Until) {
				out[last].Until = s.Until
			}
			continue
		}
		out = append(out, s)
	}
	if extra := len(out) - maxSpans; extra > 0 {
		out[extra].From = out[0].From
		out = out[extra:]
	}
	return out
}

// holds reports whether one of the times is in one of the spans.
func (all spans) holds(times []time.Time) bool {
	return slices.ContainsFunc(times, func(t time.Time) bool {
		return slices.ContainsFunc(all, func(s span) bool { return !t.Before(s.From) && !t.After(s.Until) })
	})
}

// readRecord returns what the record says. Without one, nothing is known and no code
// was run. With an error, nothing is known and code was run all the time.
func readRecord(path string) (state, error) {
	r, err := load(path)
	if err != nil {
		return state{Known: map[string]string{}, Served: spans{{Until: time.Now()}}}, err
	}
	if !r.Serving.IsZero() {
		r.Served = append(r.Served, span{r.Serving, time.Now()})
	}
	r.Served = r.Served.joined()
	return r.state, nil
}

// load reads the file. Of a bridge that was killed, it has the time until then among Served.
func load(path string) (r record, err error) {
	r.Known = map[string]string{}
	if path == "" {
		return r, nil
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	var text []byte
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxRecord) {
		err = fmt.Errorf("%s is not a file of less than %d bytes", path, maxRecord)
	}
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, err
	}
	if r.Known == nil {
		r.Known = map[string]string{}
	}
	if r.Killed && !r.Serving.IsZero() {
		r.Served = append(r.Served, span{r.Serving, changed(path)})
		r.Serving, r.Killed = time.Time{}, false
	}
	return r, nil
}

// open returns the record while code is run. The caller has a.mu, as for those that follow.
func (a *Approvals) open() record { return record{state: a.state, Serving: a.since} }

// ended returns the record when this process runs no code any more.
func (a *Approvals) ended() record {
	s := a.state
	s.Served = a.served()
	return record{state: s}
}

// killed returns the record for a Keeper.
func (a *Approvals) killed() []byte {
	text, err := json.Marshal(record{state: a.bounded(), Serving: a.since, Killed: true})
	if err != nil {
		panic(err) // texts and times always encode
	}
	return text
}

// bounded returns a copy of the state, with no more definitions than are kept.
func (a *Approvals) bounded() state {
	known := maps.Clone(a.state.Known)
	if extra := len(known) - maxKnown; extra > 0 {
		ids := slices.SortedFunc(maps.Keys(known), func(x, y string) int {
			return cmp.Or(cmp.Compare(known[x], known[y]), cmp.Compare(x, y))
		})
		for _, id := range ids[:extra] {
			delete(known, id)
		}
	}
	s := a.state
	s.Known, s.Served = known, slices.Clone(s.Served)
	return s
}

// write replaces the record as a whole.
func (a *Approvals) write(r record) error {
	r.Known = a.bounded().Known
	if err := a.save(r); err != nil {
		return err
	}
	for _, dir := range a.dead {
		_ = os.RemoveAll(dir)
	}
	a.dirty, a.dead = false, nil
	return nil
}

// save replaces the file. It returns when the record is on the disk: what it says must be true
// after a power cut.
func (a *Approvals) save(r record) error {
	if a.cfg.Record == "" {
		return nil
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(a.cfg.Record), 0o700)
	}
	if err != nil {
		return err
	}
	return filelock.Replace(a.cfg.Record, filepath.Base(a.cfg.Record)+".*", text)
}
