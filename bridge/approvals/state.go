package approvals

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
)

const (
	maxKnown = 5000 // definitions, and deciders; those that were there longest ago go first
	maxSpans = 200  // of time; the oldest are joined
)

// state is what is known: by itself what other bridges are told.
type state struct {
	Known  map[string]string `json:"known"`  // by ID of a definition that was let in: the day it was last there
	Served spans             `json:"served"` // when code was run

	// Held are, by ID, the definitions that were held and not approved, with the day of that. A host
	// may write their file again later, so that its time says nothing any more.
	Held map[string]string `json:"held,omitempty"`

	// Deciding are the files that decided about servers: those of definitions that were let in, by
	// decider of the server's name, and those that denied servers, of an empty name. The value is the
	// day it was last so.
	Deciding map[string]string `json:"deciding,omitempty"`

	// Grants are what the user has allowed for good. Policies are, by path of a policy file, the
	// SHA-256 of what is trusted. Copies share both, so neither is changed in place.
	Grants   []policy.Grant    `json:"grants,omitempty"`
	Policies map[string]string `json:"policies,omitempty"`

	dirty bool // the record lacks something of it
}

// learn takes over what another bridge knows.
func (s *state) learn(other state) {
	for id, day := range other.Known {
		if s.Known[id] < day {
			s.Known[id], s.dirty = day, true
		}
	}
	for id := range other.Held {
		s.hold(id)
	}
	for key, day := range other.Deciding {
		if s.Deciding[key] < day {
			s.decides(key, day)
		}
	}
	s.Served = append(s.Served, other.Served...).joined()
	for path, sum := range other.Policies {
		if s.Policies[path] == "" {
			s.trust(map[string]string{path: sum})
		}
	}
}

// know notes that a definition may be started now and later.
func (s *state) know(id string) {
	if day := today(); s.Known[id] != day {
		s.Known[id], s.dirty = day, true
	}
	delete(s.Held, id)
}

// hold notes that a definition is held. Where there are too many, all that isn't known is.
func (s *state) hold(id string) {
	switch {
	case s.Held[id] != "" || s.Known[id] != "":
		return
	case len(s.Held) >= maxKnown:
		s.Served = append(s.Served, span{Until: time.Now()}).joined()
	default:
		if s.Held == nil {
			s.Held = map[string]string{}
		}
		s.Held[id] = today()
	}
	s.dirty = true
}

func today() string { return time.Now().UTC().Format(time.DateOnly) }

// decider returns the key in Deciding of a file and the name of a server in it.
func decider(name, file string) string { return name + "\x00" + file }

// decides notes a decider.
func (s *state) decides(key, day string) {
	if s.Deciding == nil {
		s.Deciding = map[string]string{}
	}
	if s.Deciding[key] != day {
		s.Deciding[key], s.dirty = day, true
	}
}

// deciders returns those of the files that once denied servers, or defined one of this name. A
// directory stands for the files in it.
func (s *state) deciders(name string, files []string) (found []string) {
	for key := range s.Deciding {
		of, file, _ := strings.Cut(key, "\x00")
		if of != "" && of != name {
			continue
		}
		if slices.Contains(files, file) || slices.Contains(files, filepath.Dir(file)) {
			found = append(found, file)
		}
	}
	return found
}

// allow adds a grant, in place of one of the same. The slice is a new one, since copies of the
// state share it.
func (s *state) allow(g policy.Grant) {
	s.disallow(g)
	s.Grants = append(s.Grants, g)
}

func (s *state) disallow(g policy.Grant) {
	s.Grants = slices.DeleteFunc(slices.Clone(s.Grants), g.Same)
	s.dirty = true
}

// replaceGrants takes over all that others know, or the record.
func (s *state) replaceGrants(all []policy.Grant) {
	s.Grants = nil
	for _, g := range all {
		s.allow(g)
	}
}

// trust notes what policy files held when they were trusted. The map is a new one, since copies of
// the state share it.
func (s *state) trust(policies map[string]string) {
	all := maps.Clone(s.Policies)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, policies)
	s.Policies, s.dirty = all, true
}

// bounded returns a copy of the state, with no more definitions and deciders than are kept.
func (s *state) bounded() state {
	out := *s
	out.Known, out.Deciding, out.Served = newest(s.Known), newest(s.Deciding), slices.Clone(s.Served)
	out.Held = maps.Clone(s.Held)
	return out
}

// newest returns a copy of at most maxKnown entries, those of the latest days.
func newest(days map[string]string) map[string]string {
	kept := maps.Clone(days)
	if extra := len(kept) - maxKnown; extra > 0 {
		keys := slices.SortedFunc(maps.Keys(kept), func(x, y string) int {
			return cmp.Or(cmp.Compare(kept[x], kept[y]), cmp.Compare(x, y))
		})
		for _, key := range keys[:extra] {
			delete(kept, key)
		}
	}
	return kept
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
