package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// Over the newer protocol a server tells of changes only in answer to a request that is held open for them (MCP 2026-07-28,
// subscriptions/listen), and says with each list how long it is good (ttlMs).
const (
	unheardAge = 5 * time.Minute  // how long a list is good of which neither is said
	minAge     = 30 * time.Second // however short its server says it is
	maxAge     = time.Hour        // and however long

	goodHold = 10 * time.Second // from which on a request that was held open counts as one that was good for something
)

// listen hears of changes of the tools, if the server is one that tells them, until ctx ends, as the session does. It isn't use: a
// server that nobody calls is ended all the same.
func (s *session) listen(ctx context.Context) {
	if !outlasts(s, s.ready) || s.meta == nil || !s.tells {
		return
	}
	for pause := time.Duration(0); outlasts(s, time.After(pause)); {
		began := time.Now()
		heard, err := s.subscribe(ctx)
		var refusal *RPCError
		var login *LoginError
		if errors.As(err, &refusal) || errors.As(err, &login) { // then age is what there is
			return
		}
		if heard && time.Since(began) >= goodHold {
			pause = 0
		}
		pause = nextPause(pause)
	}
}

// subscribe makes one such request and holds it open until either side ends it. It says whether the server has acknowledged it.
func (s *session) subscribe(ctx context.Context) (heard bool, err error) {
	id := s.newID()
	s.in.expect(id, nil)
	defer s.in.forget(id)
	s.in.subscribe(id)
	defer func() { heard = s.in.subscribe("") }()
	const method = string(mcp.MethodSubscriptionsListen)
	params := map[string]any{"notifications": mcp.SubscriptionFilter{ToolsListChanged: true}, "_meta": s.metaFor(ctx, id, false)}
	_, err = s.tr.SendRequest(ctx, transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(id), Method: method, Params: params, Header: s.header(ctx, method, params),
	})
	if err == nil {
		_, err = s.in.take(id)
	}
	return heard, err
}

// subscribe notes by which request changes are heard; empty for none. It says whether the one before was acknowledged.
func (in *inbox) subscribe(id string) (heard bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.subscription = id
	return in.heard.Swap(0) != 0
}

// acknowledged takes a server's word that it will tell of changes of its tools.
func (in *inbox) acknowledged(raw []byte) {
	var n struct {
		Params struct {
			Meta          map[string]json.RawMessage `json:"_meta"`
			Notifications mcp.SubscriptionFilter     `json:"notifications"`
		} `json:"params"`
	}
	if json.Unmarshal(raw, &n) != nil || !n.Params.Notifications.ToolsListChanged {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.subscription != "" && textOf(n.Params.Meta[mcp.MetaKeySubscriptionID]) == in.subscription && in.heard.Load() == 0 {
		in.subscriptions++
		in.heard.Store(in.subscriptions)
	}
}

// unsubscribed ends the request by which changes are heard, where a server over pipes says that it will tell no more: by taking back
// what it was asked, as nobody else may.
func (in *inbox) unsubscribed(id string) []byte {
	in.mu.Lock()
	ours := id != "" && id == in.subscription
	in.mu.Unlock()
	if !ours {
		return nil
	}
	return in.deliver(id, &answer{result: json.RawMessage("{}")})
}

// fresh says whether the list is as the server would give it now, as far as can be known. The caller has the cache's turn.
func (s *session) fresh() bool {
	c := &s.tools
	switch {
	case !c.valid || c.asOf != c.stale.Load():
		return false
	case s.meta == nil: // it tells of changes by itself
		return true
	case c.heard != 0 && c.heard == s.in.heard.Load(): // it would have told since
		return true
	}
	return time.Since(c.at) < c.age
}

// ageOf is how long a page of a list is good.
func ageOf(page map[string]json.RawMessage) time.Duration {
	var ms *float64
	if json.Unmarshal(orNull(page["ttlMs"]), &ms) != nil || ms == nil {
		return unheardAge
	}
	return time.Duration(min(max(*ms, float64(minAge.Milliseconds())), float64(maxAge.Milliseconds()))) * time.Millisecond
}
