package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	maxPages = 1000
	maxTools = 10_000

	settle     = time.Second      // after a server has said that its tools changed, for it to say so again
	relistRest = 10 * time.Second // between two lists that only the server's word has caused

	// How long a list over the newer protocol is good, where the server doesn't tell of changes.
	unheardAge = 5 * time.Minute  // of which the server doesn't say it (ttlMs)
	minAge     = 30 * time.Second // however short it says it is
	maxAge     = time.Hour        // and however long
)

// toolCache keeps a session's tools until the server says that they changed.
type toolCache struct {
	stale atomic.Int64  // raised by every notification
	news  chan struct{} // has room for one: the tools have changed
	turn  chan struct{} // has room for one: who lists. It guards what follows
	valid bool
	asOf  int64 // stale when the list was begun
	list  []Tool
	at    time.Time
	age   time.Duration // for which the list is good from then on; see fresh
	heard int64         // the subscription when the list was begun
}

// listTools returns the server's tools, from the cache if they didn't change. Of several callers one
// lists, under its own context, and the others wait under theirs.
func (s *session) listTools(ctx context.Context) ([]Tool, error) {
	defer s.used(ctx)() // also while another one lists
	c := &s.tools
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.fresh() {
		return slices.Clone(c.list), nil
	}
	now, heard := c.stale.Load(), s.changes.heard.Load()
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.ListTimeout, fmt.Errorf("it did not list its tools within %v", s.cfg.ListTimeout))
	defer cancel()
	list, age, err := s.fetchTools(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c.valid, c.asOf, c.list, c.at, c.age, c.heard = true, now, list, time.Now(), age, heard
	s.listed(slices.Clone(list))
	return slices.Clone(list), nil
}

// fetchTools reads all pages, and says how long they are good.
func (s *session) fetchTools(ctx context.Context) (list []Tool, age time.Duration, err error) {
	names, position := map[string]bool{}, 0
	age, err = s.pages(ctx, tools, func(raw json.RawMessage) int {
		t, ok := readTool(raw)
		if s.inHeaders() {
			t.Invalid = badHeaders(t)
		}
		if !ok || names[t.Name] {
			s.cfg.Log.Warn("a tool without a name, or with another's, is left out",
				"server", s.server.Name, "position", position, "tool", t.Name)
		} else {
			names[t.Name] = true
			list = append(list, t)
		}
		position++
		return len(list)
	})
	if err != nil {
		return nil, 0, err
	}
	return list, age, nil
}

// badHeaders returns why a tool can't be called over HTTP by the newer protocol, which would have
// arguments of its in headers (x-mcp-header); empty where it can.
func badHeaders(t Tool) string {
	if !bytes.Contains(t.InputSchema, []byte(`"x-mcp-header"`)) {
		return ""
	}
	if err := mcp.ValidateParamHeaderAnnotations(&mcp.Tool{Name: t.Name, RawInputSchema: t.InputSchema}); err != nil {
		return text.Line(err.Error())
	}
	return ""
}

// readTool reads one definition field by field, so that an odd one costs nothing but itself. What it
// says to people and models is made safe to show here, for all that is made of it.
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

// inHeaders reports whether requests are described in headers too: by the newer protocol, over HTTP.
func (s *session) inHeaders() bool { return s.meta != nil && s.peer.left() == nil }

// definition returns a tool as it was last listed, for the arguments that it wants in headers; nil
// where it wasn't.
func (s *session) definition(ctx context.Context, tool string) *mcp.Tool {
	select {
	case s.tools.turn <- struct{}{}:
		defer func() { <-s.tools.turn }()
	case <-ctx.Done():
		return nil
	}
	for _, t := range s.tools.list {
		if t.Name == tool && t.Invalid == "" && bytes.Contains(t.InputSchema, []byte(`"x-mcp-header"`)) {
			return &mcp.Tool{Name: t.Name, RawInputSchema: t.InputSchema}
		}
	}
	return nil
}

// fresh reports whether the list is as the server would give it now, as far as can be known. The
// caller has the cache's turn.
func (s *session) fresh() bool {
	c := &s.tools
	switch {
	case !c.valid || c.asOf != c.stale.Load():
		return false
	case s.meta == nil: // it tells of changes by itself
		return true
	case c.heard != 0 && c.heard == s.changes.heard.Load(): // it would have told since
		return true
	}
	return time.Since(c.at) < c.age
}

// ageOf returns how long a page of a list is good.
func ageOf(page map[string]json.RawMessage) time.Duration {
	var ms *float64
	if json.Unmarshal(orNull(page["ttlMs"]), &ms) != nil || ms == nil {
		return unheardAge
	}
	return time.Duration(min(max(*ms, float64(minAge.Milliseconds())), float64(maxAge.Milliseconds()))) * time.Millisecond
}

// listed tells of a list that the server has just given. The caller has the cache's turn: lists are
// told in their order.
func (s *session) listed(list []Tool) {
	if s.cfg.Listed != nil {
		s.cfg.Listed(s.server, s.about.version, s.about.purpose, list)
	}
}

// changed notes that the server's tools have changed. It doesn't block.
func (s *session) changed() {
	s.tools.stale.Add(1)
	select {
	case s.tools.news <- struct{}{}:
	default:
	}
}

// follow lists the tools again when the server says that they changed, once they have been listed,
// until the session is dying. So what keeps lists for later needn't wait for the next caller. A
// burst of changes is one list.
func (s *session) follow() {
	for outlasts(s, s.tools.news) {
		if !outlasts(s, time.After(settle)) {
			return
		}
		ctx, cancel := context.WithTimeout(ownWork(context.Background()), s.cfg.ListTimeout)
		if s.hasListed() {
			_, _ = s.listTools(ctx) // the next caller hears of an error; the end of the session ends it too
		}
		cancel()
		if !outlasts(s, time.After(relistRest)) {
			return
		}
	}
}

// hasListed reports whether the tools were ever asked for. It doesn't wait for a list under way.
func (s *session) hasListed() bool {
	select {
	case s.tools.turn <- struct{}{}:
		defer func() { <-s.tools.turn }()
		return s.tools.valid
	default:
		return true
	}
}
