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
	s     *session
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

// get returns the server's tools, from the cache if they didn't change. Of several callers one
// lists, under its own context, and the others wait under theirs.
func (c *toolCache) get(ctx context.Context) ([]Tool, error) {
	defer c.s.used(ctx)() // also while another one lists
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.fresh() {
		return slices.Clone(c.list), nil
	}
	now, heard := c.stale.Load(), c.s.changes.heard.Load()
	ctx, cancel := context.WithTimeoutCause(ctx, c.s.cfg.ListTimeout,
		fmt.Errorf("it did not list its tools within %v", c.s.cfg.ListTimeout))
	defer cancel()
	list, age, err := c.fetch(ctx)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c.valid, c.asOf, c.list, c.at, c.age, c.heard = true, now, list, time.Now(), age, heard
	c.listed(slices.Clone(list))
	return slices.Clone(list), nil
}

// fetch reads all pages, and says how long they are good.
func (c *toolCache) fetch(ctx context.Context) (list []Tool, age time.Duration, err error) {
	names, position := map[string]bool{}, 0
	age, err = c.s.pages(ctx, tools, func(raw json.RawMessage) int {
		t, ok := readTool(raw)
		if c.s.inHeaders() {
			t.Invalid = badHeaders(t)
		}
		if !ok || names[t.Name] {
			c.s.cfg.Log.Warn("a tool without a name, or with another's, is left out",
				"server", c.s.server.Name, "position", position, "tool", t.Name)
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
	switch {
	case !c.valid || c.asOf != c.stale.Load():
		return false
	case c.s.meta == nil: // it tells of changes by itself
		return true
	case c.heard != 0 && c.heard == c.s.changes.heard.Load(): // it would have told since
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
	return time.Duration(min(max(*ms, float64(minAge.Milliseconds())),
		float64(maxAge.Milliseconds()))) * time.Millisecond
}

// listed tells of a list that the server has just given. The caller has the cache's turn: lists are
// told in their order.
func (c *toolCache) listed(list []Tool) {
	if c.s.cfg.Listed != nil {
		c.s.cfg.Listed(c.s.server, c.s.about.version, c.s.about.purpose, list)
	}
}

// changed notes that the server's tools have changed. It doesn't block.
func (c *toolCache) changed() {
	c.stale.Add(1)
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// follow lists the tools again when the server says that they changed, once they have been listed,
// until the session is dying. So what keeps lists for later needn't wait for the next caller. A
// burst of changes is one list.
func (c *toolCache) follow() {
	for outlasts(c.s, c.news) {
		if !outlasts(c.s, time.After(settle)) {
			return
		}
		ctx, cancel := context.WithTimeout(ownWork(context.Background()), c.s.cfg.ListTimeout)
		if c.wasAsked() {
			_, _ = c.get(ctx) // the next caller hears of an error; the end of the session ends it too
		}
		cancel()
		if !outlasts(c.s, time.After(relistRest)) {
			return
		}
	}
}

// wasAsked reports whether the tools were ever asked for. It doesn't wait for a list under way.
func (c *toolCache) wasAsked() bool {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
		return c.valid
	default:
		return true
	}
}
