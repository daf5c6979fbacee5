package approvals

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
)

const (
	maxKnown = 5000 // definitions; those that were there longest ago go first
	maxSpans = 200  // of time; the oldest are joined
)

// state is what is known: by itself what other bridges are told.
type state struct {
	Known  map[string]string `json:"known"`  // by ID of a definition that was let in: the day it was last there
	Served spans             `json:"served"` // when code was run

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
	s.Served = append(s.Served, other.Served...).joined()
	for path, sum := range other.Policies {
		if s.Policies[path] == "" {
			s.trust(map[string]string{path: sum})
		}
	}
}

// know notes that a definition may be started now and later.
func (s *state) know(id string) {
	if day := time.Now().UTC().Format(time.DateOnly); s.Known[id] != day {
		s.Known[id], s.dirty = day, true
	}
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

// bounded returns a copy of the state, with no more definitions than are kept.
func (s *state) bounded() state {
	known := maps.Clone(s.Known)
	if extra := len(known) - maxKnown; extra > 0 {
		ids := slices.SortedFunc(maps.Keys(known), func(x, y string) int {
			return cmp.Or(cmp.Compare(known[x], known[y]), cmp.Compare(x, y))
		})
		for _, id := range ids[:extra] {
			delete(known, id)
		}
	}
	out := *s
	out.Known, out.Served = known, slices.Clone(s.Served)
	return out
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
