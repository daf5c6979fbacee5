package schemas

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/filelock"
	"github.com/mcp-bridge/mcp-bridge/bridge/shapes"
)

const (
	seenSuffix = ".seen"
	seenFormat = "mcp-bridge-seen-2"
	maxSeen    = 1 << 20 // bytes of one server's; beyond it the shapes that changed first are dropped

	seenLock     = ".seen.lock"
	seenLockWait = 5 * time.Second // for another process that saves shapes
)

// seen is a file of shapes after its first line.
type seen struct {
	Key     string                   `json:"key"`
	Tools   map[string]*shapes.Shape `json:"tools"`
	Changed map[string]int64         `json:"changed"` // when a tool's shape did, in Unix milliseconds
}

// Seen returns the shapes of results of a server's tools that were saved under a key, by the tools'
// names.
func (s *Store) Seen(key string) map[string]*shapes.Shape {
	if s == nil {
		return nil
	}
	return s.readSeen(key).Tools
}

// readSeen returns the saved shapes of a key; none if the file can't be used.
func (s *Store) readSeen(key string) seen {
	text, err := s.read(key+seenSuffix, maxSeen+1)
	head, body, _ := bytes.Cut(text, []byte("\n"))
	var c seen
	if err != nil || len(text) > maxSeen || string(head) != seenHeader(body) ||
		json.Unmarshal(body, &c) != nil || c.Key != key {
		return seen{}
	}
	maps.DeleteFunc(c.Tools, func(_ string, shape *shapes.Shape) bool { return !shape.Valid() })
	return c
}

// SaveSeen merges the shapes of results of a server's tools into those that were saved. It drops
// those of tools that the server's saved list doesn't have.
func (s *Store) SaveSeen(key string, tools map[string]*shapes.Shape) error {
	if s == nil {
		return nil
	}
	if err := s.saveSeen(key, tools); err != nil {
		return fmt.Errorf("keeping the shapes of results: %w", err)
	}
	return nil
}

func (s *Store) saveSeen(key string, tools map[string]*shapes.Shape) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), seenLockWait)
	defer cancel()
	release, err := filelock.Acquire(ctx, filepath.Join(s.dir, seenLock))
	if err != nil {
		return err
	}
	defer release()
	saved := s.readSeen(key)
	all := seen{Key: key, Tools: map[string]*shapes.Shape{}, Changed: map[string]int64{}}
	maps.Copy(all.Tools, saved.Tools)
	maps.Copy(all.Changed, saved.Changed)
	for name, shape := range tools {
		merged := shapes.Merge(saved.Tools[name], shape)
		if merged.Valid() && !shapes.Same(merged, saved.Tools[name]) {
			all.Tools[name], all.Changed[name] = merged, time.Now().UnixMilli()
		}
	}
	if list, ok := s.Load(key); ok {
		listed := map[string]bool{}
		for _, t := range list.Tools {
			listed[t.Name] = true
		}
		maps.DeleteFunc(all.Tools, func(name string, _ *shapes.Shape) bool { return !listed[name] })
	}
	head, body, err := all.encode(s.seen)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(key+seenSuffix, head, body); err != nil {
		return err
	}
	s.prune(key + seenSuffix)
	return nil
}

// encode returns the first line and the rest of the file, without the oldest shapes beyond most
// bytes.
func (c seen) encode(most int) (head string, body []byte, err error) {
	for {
		maps.DeleteFunc(c.Changed, func(name string, _ int64) bool { return c.Tools[name] == nil })
		body, err = json.Marshal(c)
		head = seenHeader(body) + "\n"
		if err != nil || len(head)+len(body) <= most || len(c.Tools) == 0 {
			return head, body, err
		}
		names := slices.SortedFunc(maps.Keys(c.Tools), func(a, b string) int {
			return cmp.Or(cmp.Compare(c.Changed[a], c.Changed[b]), cmp.Compare(a, b))
		})
		for _, name := range names[:1+len(names)/20] { // some at a time: each round encodes all
			delete(c.Tools, name)
		}
	}
}

func seenHeader(body []byte) string {
	sum := sha256.Sum256(body)
	return seenFormat + " " + hex.EncodeToString(sum[:])
}
