package catalog

import (
	"encoding/json"
	"log/slog"
	"maps"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// Bounds of what is looked at and shown of results without a schema.
const (
	maxLooked    = 1 << 20 // bytes of the results of one tool that a process looks at
	maxSeenTools = 500     // of one server
	maxSeenName  = 256     // bytes of a tool's name
	maxSeenText  = 150     // bytes or so of a shape in a signature
	maxSeenLong  = 1000    // and in a tool's description
)

// seen holds the shapes of results of tools without an output schema. It is safe for concurrent
// use.
type seen struct {
	store *Store
	log   *slog.Logger

	mu      sync.Mutex
	servers map[string]*seenServer // by the keys of their definitions
}

type seenServer struct {
	shapes map[string]*shape // by the tools' real names
	looked map[string]int    // bytes
	isNew  bool              // a shape has changed since it was saved
}

// of returns what is known of the server whose definition has the key. It is called with mu held.
func (s *seen) of(key string) *seenServer {
	known := s.servers[key]
	if known == nil {
		known = &seenServer{shapes: s.store.seen(key), looked: map[string]int{}}
		s.servers[key] = known
	}
	return known
}

// text returns the shape of a tool's results in about most bytes, or "" if none was seen.
func (s *seen) text(key, tool string, most int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.of(key).shapes[tool]; found != nil {
		return found.text(most)
	}
	return ""
}

// Note adds a result of a tool without an output schema to the tool's shape. It keeps no value.
func (c *Catalog) Note(s Server, tool upstream.Tool, result json.RawMessage) {
	if len(tool.OutputSchema) > 0 || len(result) > 2*maxShapeText || len(tool.Name) > maxSeenName {
		return
	}
	c.seen.mu.Lock()
	known := c.seen.of(c.identities[s.Name]())
	skip := known.looked[tool.Name]+len(result) > maxLooked ||
		known.shapes[tool.Name] == nil && len(known.shapes) >= maxSeenTools
	known.looked[tool.Name] += len(result)
	c.seen.mu.Unlock()
	if skip {
		return
	}
	found, ok := shapeOf(onlyText(result))
	if !ok {
		return
	}
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	before := known.shapes[tool.Name]
	merged := merge(before, found)
	if !merged.valid() {
		return
	}
	known.shapes[tool.Name] = merged // also the keys that were seen once
	if before == nil || !sameShape(before, merged) {
		known.isNew = true
	}
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

// SaveNoted saves new shapes and renews the descriptions of the tools they belong to. The caller
// calls it after an answer is written.
func (c *Catalog) SaveNoted() {
	changed := map[string]map[string]*shape{}
	c.seen.mu.Lock()
	for key, known := range c.seen.servers {
		if known.isNew {
			changed[key], known.isNew = maps.Clone(known.shapes), false
		}
	}
	c.seen.mu.Unlock()
	if len(changed) == 0 {
		return
	}
	for key, shapes := range changed {
		if err := c.seen.store.saveSeen(key, shapes); err != nil {
			c.seen.log.Warn("the shapes of a server's results could not be kept", "err", err)
		}
	}
	for name, key := range c.identities {
		if changed[key()] != nil {
			c.renew(name)
		}
	}
}
