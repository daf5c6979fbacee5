package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	maxPages = 1000
	maxTools = 10_000

	// How long a list is good while the server doesn't tell of changes.
	unheardAge = 5 * time.Minute  // of which the server doesn't say it (ttlMs)
	minAge     = 30 * time.Second // however short it says it is
	maxAge     = time.Hour        // and however long
)

// toolCache keeps a session's tools until the server says that they changed.
type toolCache struct {
	s         *session
	stale     atomic.Int64  // raised when the tools may have changed
	turn      chan struct{} // has room for one: who lists. It guards what follows
	valid     bool
	asOf      int64 // stale when the list was begun
	list      []Tool
	goodUntil time.Time // where the server doesn't tell of changes
}

// listTools returns the server's tools, from the cache if they didn't change. Of several callers
// one lists, under its own context, and the others wait under theirs.
func (s *session) listTools(ctx context.Context) ([]Tool, error) {
	c := &s.tools
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.fresh() {
		return slices.Clone(c.list), nil
	}
	asOf := c.stale.Load()
	raw, age, err := s.pages(ctx, tools)
	if err != nil {
		return nil, err
	}
	list := s.readTools(raw)
	c.valid, c.asOf, c.list, c.goodUntil = true, asOf, list, time.Now().Add(age)
	if s.cfg.Listed != nil { // in turn: lists are told in their order
		s.cfg.Listed(s.defined, s.about.version, s.about.purpose, slices.Clone(list))
	}
	return slices.Clone(list), nil
}

// readTools returns the tools of a list, without those that have no name or another's.
func (s *session) readTools(raw []json.RawMessage) (list []Tool) {
	names := map[string]bool{}
	for i, raw := range raw {
		t, ok := readTool(raw)
		if s.inHeaders() {
			t.Invalid = badHeaders(t)
		}
		if !ok || names[t.Name] {
			s.cfg.Log.Warn("a tool without a name, or with another's, is left out",
				"server", s.server.Name, "position", i, "tool", t.Name)
			continue
		}
		names[t.Name] = true
		list = append(list, t)
	}
	return list
}

// badHeaders returns why a tool can't be called over HTTP by the newer protocol, which would have
// arguments of its in headers (x-mcp-header); empty where it can.
func badHeaders(t Tool) string {
	if !bytes.Contains(t.InputSchema, []byte(`"x-mcp-header"`)) {
		return ""
	}
	if err := mcp.ValidateParamHeaderAnnotations(&mcp.Tool{Name: t.Name,
		RawInputSchema: t.InputSchema}); err != nil {
		return text.Line(err.Error())
	}
	return ""
}

// readTool reads one definition field by field, so that an odd one costs nothing but itself. What
// it says to people and models is made safe to show here, for all that is made of it.
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
		Name: str("name"), Title: text.Line(str("title")), Description: text.Safe(str("description")),
		InputSchema: text.Schema(fields["inputSchema"]), OutputSchema: text.Schema(fields["outputSchema"]),
		Annotations: fields["annotations"],
	}
	return t, t.Name != ""
}

// inHeaders reports whether requests are described in headers too: by the newer protocol, over
// HTTP.
func (s *session) inHeaders() bool { return s.meta != nil && s.peer.left() == nil }

// definition returns a tool as it was last listed, for the arguments that it wants in headers; nil
// where it wasn't.
func (c *toolCache) definition(ctx context.Context, tool string) *mcp.Tool {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil
	}
	for _, t := range c.list {
		if t.Name == tool && t.Invalid == "" && bytes.Contains(t.InputSchema, []byte(`"x-mcp-header"`)) {
			return &mcp.Tool{Name: t.Name, RawInputSchema: t.InputSchema}
		}
	}
	return nil
}

// fresh reports whether the list is as the server would give it now, as far as can be known. The
// caller has the cache's turn.
func (c *toolCache) fresh() bool {
	return c.valid && c.asOf == c.stale.Load() && (c.s.changes.isHeard() || time.Now().Before(c.goodUntil))
}

// ageOf returns how long a page of a list is good.
func ageOf(page map[string]json.RawMessage) time.Duration {
	var ms *float64
	if json.Unmarshal(page["ttlMs"], &ms) != nil || ms == nil {
		return unheardAge
	}
	return time.Duration(min(max(*ms, float64(minAge.Milliseconds())),
		float64(maxAge.Milliseconds()))) * time.Millisecond
}
