package bridge

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/schemas"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// shelf keeps the latest toolbox of each server, so that what is made of a list is made once. It is safe for concurrent use.
type shelf struct {
	judge       func(entry, upstream.Tool) policy.Decision
	saved       *schemas.Store              // lists of earlier processes
	definitions map[string]discovery.Server // by name, to find these; it doesn't change
	ranking     ranking
	seen        *seen // of results without a schema; nil knows none

	mu     sync.Mutex
	boxes  map[string]*toolbox  // by real name
	before map[string]*toolbox  // what these have replaced, where a server's tools have changed
	late   map[string]time.Time // when a search has waited in vain for a server to list its tools
}

func newShelf(saved *schemas.Store, definitions map[string]discovery.Server, judge func(entry, upstream.Tool) policy.Decision) *shelf {
	return &shelf{saved: saved, definitions: definitions, judge: judge,
		boxes: map[string]*toolbox{}, before: map[string]*toolbox{}, late: map[string]time.Time{}}
}

// box is the toolbox of a list that a server has just given: the one that is there while the list stays the same.
func (s *shelf) box(e entry, tools []upstream.Tool) *toolbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.late, e.name)
	b := s.boxes[e.name]
	switch {
	case b == nil || !slices.EqualFunc(b.listed, tools, sameTool):
		if b != nil {
			s.before[e.name] = b
		}
		b = s.toolbox(e, tools)
	case !b.asOf.IsZero():
		current := *b
		current.asOf = time.Time{}
		b = &current
	}
	s.boxes[e.name] = b
	return b
}

// known is the toolbox of a server that was asked for its tools before, by this process or an earlier one, else nil.
func (s *shelf) known(e entry) *toolbox {
	s.mu.Lock()
	b := s.boxes[e.name]
	s.mu.Unlock()
	if b != nil {
		return b
	}
	definition, ok := s.definitions[e.name]
	if !ok {
		return nil
	}
	list, ok := s.saved.Load(schemas.Key(definition))
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boxes[e.name] == nil { // else the server has just told
		b = s.toolbox(e, list.Tools)
		b.asOf = list.AsOf
		s.boxes[e.name] = b
	}
	return s.boxes[e.name]
}

// unknown is the error of a call of a tool that isn't in the box, which is the server's latest list. Who has found it in an earlier
// list is told that this was out of date.
func (s *shelf) unknown(box *toolbox, name string) error {
	s.mu.Lock()
	before := s.before[box.server.name]
	s.mu.Unlock()
	if before == nil {
		return box.unknown(name)
	}
	if _, ok := before.find(name); !ok {
		return box.unknown(name)
	}
	if _, denied := box.denied[box.real(name)]; denied {
		return box.unknown(name)
	}
	when := "before"
	if !before.asOf.IsZero() {
		when = age(before.asOf) + " ago"
	}
	return invalid("server %q has no tool %q any more: the list of %s was out of date; search anew. It now has: %s", box.server.name, name, when, text.List(box.names()))
}

// maxGone bounds the names of tools that a guest is told to be gone, in number and in bytes each.
const (
	maxGone     = 200
	maxGoneName = 200
)

// gone are the names and aliases of tools that the server had before its latest list, which is the box.
func (s *shelf) gone(box *toolbox) (names []string) {
	s.mu.Lock()
	before := s.before[box.server.name]
	s.mu.Unlock()
	if before == nil {
		return nil
	}
	for _, t := range before.tools {
		for _, name := range slices.Compact([]string{t.Name, before.aliases[t.Name]}) {
			_, denied := box.denied[box.real(name)]
			if _, ok := box.find(name); !ok && !denied && len(name) <= maxGoneName && len(names) < maxGone {
				names = append(names, name)
			}
		}
	}
	return names
}

// lateFor is how long a server that let a search wait in vain isn't waited for again.
const lateFor = time.Minute

func (s *shelf) setLate(e entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late[e.name] = time.Now()
}

func (s *shelf) isLate(e entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	when, ok := s.late[e.name]
	return ok && time.Since(when) < lateFor
}

// sameTool is quick for the same tool: its raw fields then share their memory.
func sameTool(a, b upstream.Tool) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Description == b.Description && a.Invalid == b.Invalid &&
		bytes.Equal(a.InputSchema, b.InputSchema) && bytes.Equal(a.OutputSchema, b.OutputSchema) && bytes.Equal(a.Annotations, b.Annotations)
}
