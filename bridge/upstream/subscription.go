package upstream

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

// A subscription is the request by which changes are heard. Over the newer protocol a server tells
// of them only in answer to one that is held open (MCP 2026-07-28, subscriptions/listen).
type subscription struct {
	s *session

	mu    sync.Mutex
	id    string // of the request; empty for none
	heard bool   // the server tells of each change, as it has acknowledged; or see hear
}

// begin notes by which request changes are heard; empty for none. It reports whether the one before
// was acknowledged.
func (c *subscription) begin(id string) (heard bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	heard, c.id, c.heard = c.heard, id, false
	return heard
}

// acknowledged notes that the server reports changes of its tools from now on. They may have
// changed before.
func (c *subscription) acknowledged(params json.RawMessage) {
	var n struct {
		Meta          map[string]json.RawMessage `json:"_meta"`
		Notifications mcp.SubscriptionFilter     `json:"notifications"`
	}
	if json.Unmarshal(params, &n) != nil || !n.Notifications.ToolsListChanged {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id != "" && jsonrpc.TextOf(n.Meta[mcp.MetaKeySubscriptionID]) == c.id && !c.heard {
		c.heard = true
		c.s.tools.stale.Add(1)
	}
}

// hear notes whether changes are heard without such a request, as over the older protocol. They may
// have changed before.
func (c *subscription) hear(heard bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard = heard; heard {
		c.s.tools.stale.Add(1)
	}
}

// isHeard reports whether the server tells of each change.
func (c *subscription) isHeard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// cancelled ends the request by which changes are heard, where a server over pipes says that it
// will tell no more: by cancelling what it was asked, which is its right for this request alone.
func (c *subscription) cancelled(params json.RawMessage) {
	var n struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &n)
	c.mu.Lock()
	ours := c.id != "" && jsonrpc.TextOf(n.ID) == c.id
	c.mu.Unlock()
	if ours {
		c.s.conn.Resolve(n.ID, json.RawMessage("{}"), nil)
	}
}

// listen hears of changes of the tools, if the server is one that tells them, until ctx ends, as
// the session does. It isn't use: a server that is never called is ended all the same.
func (c *subscription) listen(ctx context.Context) {
	select {
	case <-c.s.ready:
	case <-ctx.Done():
		return
	}
	if c.s.meta == nil || !c.s.about.tells {
		return
	}
	for pause := firstPause; ; pause = nextPause(pause) {
		heard, err := c.subscribe(ctx)
		if isA[*RPCError](err) || isA[*LoginError](err) { // then age is what there is
			return
		}
		if heard {
			pause = firstPause
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// subscribe makes one such request and holds it open until either side ends it. It reports whether
// the server has acknowledged it.
func (c *subscription) subscribe(ctx context.Context) (heard bool, err error) {
	id := c.s.conn.NewID()
	c.begin(jsonrpc.TextOf(id))
	defer func() { heard = c.begin("") }()
	_, err = c.s.exchange(ctx, id, string(mcp.MethodSubscriptionsListen), map[string]any{
		"notifications": mcp.SubscriptionFilter{ToolsListChanged: true}, "_meta": c.s.metaFor(ctx, id, false),
	})
	return heard, err
}
