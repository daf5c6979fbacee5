package bridge

import (
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/schemas"
	"github.com/mcp-bridge/mcp-bridge/bridge/shapes"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Bounds of what is looked at and shown of results without a schema.
const (
	maxLooked    = 1 << 20 // bytes of the results of one tool that a process looks at
	maxSeenTools = 500     // of one server
	maxSeenText  = 150     // bytes or so of a shape in a signature
	maxSeenLong  = 1000    // and in a tool's description
)

// seen holds the shapes of results of tools without an output schema. It is safe for concurrent use.
type seen struct {
	store *schemas.Store
	log   *slog.Logger

	mu      sync.Mutex
	servers map[string]*seenServer // by the keys of their definitions
}

type seenServer struct {
	shapes map[string]*shapes.Shape // by the tools' real names
	looked map[string]int           // bytes
	names  map[string]bool          // of servers with this definition that have new shapes
}

func newSeen(store *schemas.Store, log *slog.Logger) *seen {
	return &seen{store: store, log: log, servers: map[string]*seenServer{}}
}

// of returns what is known of a server. It is called with mu held.
func (s *seen) of(d discovery.Server) *seenServer {
	key := schemas.Key(d)
	known := s.servers[key]
	if known == nil {
		known = &seenServer{shapes: s.store.Seen(key), looked: map[string]int{}}
		if known.shapes == nil {
			known.shapes = map[string]*shapes.Shape{}
		}
		s.servers[key] = known
	}
	return known
}

// text returns the shape of a tool's results in about most bytes, or "" if none was seen.
func (s *seen) text(d discovery.Server, tool string, most int) string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if shape := s.of(d).shapes[tool]; shape != nil {
		return shape.Text(most)
	}
	return ""
}

// note adds a result of a tool without an output schema to the tool's shape. It keeps no value.
func (s *seen) note(d discovery.Server, tool upstream.Tool, result json.RawMessage) {
	if s == nil || len(tool.OutputSchema) > 0 ||
		len(result) > 2*shapes.MaxText || len(tool.Name) > maxRecordedName {
		return
	}
	s.mu.Lock()
	known := s.of(d)
	skip := known.looked[tool.Name]+len(result) > maxLooked ||
		known.shapes[tool.Name] == nil && len(known.shapes) >= maxSeenTools
	known.looked[tool.Name] += len(result)
	s.mu.Unlock()
	if skip {
		return
	}
	shape, ok := shapes.Of(onlyText(result))
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := known.shapes[tool.Name]
	merged := shapes.Merge(before, shape)
	if !merged.Valid() {
		return
	}
	known.shapes[tool.Name] = merged // also the keys that were seen once
	if before != nil && shapes.Same(before, merged) {
		return
	}
	if known.names == nil {
		known.names = map[string]bool{}
	}
	known.names[d.Name] = true
}

// onlyText returns the text of a result that code gets as data if it is JSON: the only text, or the
// structured content of a result without text. It returns "" for other results.
func onlyText(result json.RawMessage) string {
	var r struct {
		Content           []struct{ Type, Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	if json.Unmarshal(result, &r) != nil || r.IsError {
		return ""
	}
	var texts []string
	for _, c := range r.Content {
		if c.Type == "text" {
			texts = append(texts, c.Text)
		}
	}
	switch len(texts) {
	case 0:
		return string(r.StructuredContent)
	case 1:
		return texts[0]
	}
	return ""
}

// flush saves new shapes and rebuilds the descriptions of the tools they belong to. It runs after
// the answer is written.
func (s *seen) flush(c *catalog) {
	type change struct {
		key    string
		shapes map[string]*shapes.Shape
		names  map[string]bool
	}
	var changes []change
	s.mu.Lock()
	for key, known := range s.servers {
		if known.names != nil {
			changes = append(changes, change{key, maps.Clone(known.shapes), known.names})
			known.names = nil
		}
	}
	s.mu.Unlock()
	for _, ch := range changes {
		if err := s.store.SaveSeen(ch.key, ch.shapes); err != nil {
			s.log.Warn("the shapes of a server's results could not be kept", "err", err)
		}
		for name := range ch.names {
			c.shelf.renew(name)
		}
	}
}

// renew replaces a server's toolbox, whose texts are then made again at the next use.
func (s *shelf) renew(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.boxes[name]; old != nil {
		b := s.toolbox(old.server, old.listed)
		b.asOf, b.part = old.asOf, old.part
		s.boxes[name] = b
	}
}

// toolbox makes the toolbox of a list.
func (s *shelf) toolbox(e entry, tools []upstream.Tool) *toolbox {
	b := newToolbox(e, tools, s.judge)
	b.seen = func(tool string, most int) string { return s.seen.text(s.definitions[e.name], tool, most) }
	return b
}

// seenMark is what a type that a server hasn't declared is marked with.
const seenMark = " # seen, not declared"

// withSeen returns a signature whose result type is that of the results seen.
func (b *toolbox) withSeen(signature string, t upstream.Tool) string {
	if len(t.OutputSchema) > 0 || b.seen == nil {
		return signature
	}
	shape := b.seen(t.Name, maxSeenText)
	at := strings.LastIndex(signature, " -> ")
	if shape == "" || at < 0 {
		return signature
	}
	return signature[:at] + " -> " + shape + seenMark
}

// seenNote is a sentence for a tool's description on the results that were seen, or nothing.
func (b *toolbox) seenNote(t upstream.Tool) string {
	if len(t.OutputSchema) > 0 || b.seen == nil {
		return ""
	}
	if shape := b.seen(t.Name, maxSeenLong); shape != "" {
		return "Results seen so far, not declared by the server: " + shape
	}
	return ""
}
