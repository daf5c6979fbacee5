package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

const (
	maxPages = 1000
	maxTools = 10_000
)

// toolCache keeps a session's tools until the server says that they changed.
type toolCache struct {
	stale atomic.Int64  // raised by every notification
	turn  chan struct{} // has room for one: who lists. It guards what follows
	valid bool
	asOf  int64 // stale when the list was begun
	list  []Tool
	at    time.Time
}

// unheardAge is how long a list is good where the server can't say that it changed.
const unheardAge = 5 * time.Minute

// listTools is the server's tools, from the cache if they didn't change. Of several callers one lists, under its own
// context, and the others wait under theirs.
func (s *session) listTools(ctx context.Context) ([]Tool, error) {
	c := &s.tools
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now := c.stale.Load()
	if c.valid && c.asOf == now && (s.meta == nil || time.Since(c.at) < unheardAge) {
		return slices.Clone(c.list), nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.ListTimeout, fmt.Errorf("it did not list its tools within %v", s.cfg.ListTimeout))
	defer cancel()
	list, err := s.fetchTools(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c.valid, c.asOf, c.list, c.at = true, now, list, time.Now()
	s.listed(slices.Clone(list))
	return slices.Clone(list), nil
}

// fetchTools reads all pages.
func (s *session) fetchTools(ctx context.Context) ([]Tool, error) {
	var list []Tool
	names, position := map[string]bool{}, 0
	err := s.pages(ctx, tools, func(raw json.RawMessage) int {
		t, ok := readTool(raw)
		if !ok || names[t.Name] {
			s.cfg.Log.Warn("a tool without a name, or with another's, is left out", "server", s.server.Name, "position", position, "tool", t.Name)
		} else {
			names[t.Name] = true
			list = append(list, t)
		}
		position++
		return len(list)
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// readTool reads one definition field by field, so that an odd one costs nothing but itself.
func readTool(raw json.RawMessage) (Tool, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return Tool{}, false
	}
	str := func(key string) (s string) {
		_ = json.Unmarshal(fields[key], &s)
		return s
	}
	t := Tool{
		Name: str("name"), Title: str("title"), Description: str("description"),
		InputSchema: fields["inputSchema"], OutputSchema: fields["outputSchema"], Annotations: fields["annotations"],
	}
	return t, t.Name != ""
}
