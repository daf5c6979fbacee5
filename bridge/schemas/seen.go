package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/mcp-bridge/mcp-bridge/bridge/shapes"
)

const (
	seenSuffix = ".seen"
	seenFormat = "mcp-bridge-seen-1"
	maxSeen    = 1 << 20 // bytes of one server's; more are not kept
)

// seen is a file of shapes after its first line.
type seen struct {
	Key   string                   `json:"key"`
	Tools map[string]*shapes.Shape `json:"tools"`
}

// Seen returns the shapes of results of a server's tools that were saved under a key, by the tools'
// names.
func (s *Store) Seen(key string) map[string]*shapes.Shape {
	if s == nil {
		return nil
	}
	text, err := s.read(key+seenSuffix, maxSeen+1)
	head, body, _ := bytes.Cut(text, []byte("\n"))
	var c seen
	if err != nil || len(text) > maxSeen || string(head) != seenHeader(body) ||
		json.Unmarshal(body, &c) != nil || c.Key != key {
		return nil
	}
	for name, shape := range c.Tools {
		if !shape.Valid() {
			delete(c.Tools, name)
		}
	}
	return c.Tools
}

// SaveSeen keeps the shapes of results of a server's tools, together with what others have saved
// meanwhile.
func (s *Store) SaveSeen(key string, tools map[string]*shapes.Shape) error {
	if s == nil {
		return nil
	}
	all := s.Seen(key)
	if all == nil {
		all = map[string]*shapes.Shape{}
	}
	for name, shape := range tools {
		if merged := shapes.Merge(all[name], shape); merged.Valid() {
			all[name] = merged
		}
	}
	body, err := json.Marshal(seen{key, all})
	head := seenHeader(body) + "\n"
	if err != nil || len(head)+len(body) > maxSeen {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(key+seenSuffix, head, body); err != nil {
		return fmt.Errorf("keeping the shapes of results: %w", err)
	}
	s.prune(key + seenSuffix)
	return nil
}

func seenHeader(body []byte) string {
	sum := sha256.Sum256(body)
	return seenFormat + " " + hex.EncodeToString(sum[:])
}
