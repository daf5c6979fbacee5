package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxListeners is how many subscriptions a client may have at a time.
const maxListeners = 16

// listener receives notifications of changes: of all for a client that has shaken hands, or of those
// that a subscription of 2026-07-28 asks for. due is guarded by the conn's mu.
type listener struct {
	id    json.RawMessage // of the subscription's request; nil for the client that has shaken hands
	wants map[string]bool // by the notification's method; nil for all
	acked chan struct{}   // closed when the subscription was acknowledged
	over  <-chan struct{} // closed when it was cancelled; nil for the client that has shaken hands

	due map[string]bool // what it isn't told yet
}

// shaken adds a listener for a client without subscriptions, which gets all changes from now on.
func (c *conn) shaken() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.ContainsFunc(c.listeners, func(l *listener) bool { return l.id == nil }) {
		acked := make(chan struct{})
		close(acked)
		c.listeners = append(c.listeners, &listener{acked: acked, due: map[string]bool{}})
	}
}

// listen answers subscriptions/listen when the subscription ends, by the client's cancel or with the
// connection. A subscription to no known change ends once it is acknowledged.
func (c *conn) listen(ctx context.Context, x *exchange, text []byte) mcp.JSONRPCMessage {
	var m struct {
		Params struct{ Notifications *mcp.SubscriptionFilter }
	}
	if json.Unmarshal(text, &m) != nil || m.Params.Notifications == nil {
		return rpcError(mcp.INVALID_PARAMS, "params.notifications must be an object of what to listen for")
	}
	l := &listener{
		id: x.id, wants: map[string]bool{}, acked: make(chan struct{}), over: ctx.Done(), due: map[string]bool{},
	}
	if m.Params.Notifications.ToolsListChanged {
		l.wants[string(mcp.MethodNotificationToolsListChanged)] = true
	}
	if m.Params.Notifications.ResourcesListChanged {
		l.wants[string(mcp.MethodNotificationResourcesListChanged)] = true
	}
	if !c.subscribe(l) {
		return rpcError(codeBusy, fmt.Sprintf("there are %d subscriptions, which is the limit; cancel one", maxListeners))
	}
	defer c.unsubscribe(l)
	if len(l.wants) > 0 {
		<-ctx.Done()
	} else {
		select {
		case <-l.acked:
		case <-ctx.Done():
		}
	}
	return mcp.NewJSONRPCResultResponse(mcp.RequestId{}, map[string]any{
		"resultType": mcp.ResultTypeComplete,
		"_meta":      map[string]any{mcp.MetaKeySubscriptionID: l.id, mcp.MetaKeyServerInfo: c.parked.self},
	})
}

func (c *conn) subscribe(l *listener) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.listeners) >= maxListeners {
		return false
	}
	c.listeners = append(c.listeners, l)
	c.wake()
	return true
}

func (c *conn) unsubscribe(l *listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = slices.DeleteFunc(c.listeners, func(other *listener) bool { return other == l })
}

// changed queues a notification for each listener that subscribed to method. Repeated changes are
// sent once. It doesn't block.
func (c *conn) changed(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.listeners {
		if l.wants == nil || l.wants[method] {
			l.due[method] = true
			c.wake()
		}
	}
}

func (c *conn) wake() {
	select {
	case c.changes <- struct{}{}:
	default: // it will be seen anyway
	}
}

// announce sends queued notifications until ctx ends. No other goroutine sends them, so that each
// subscription is acknowledged first.
func (c *conn) announce(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changes:
		}
		c.mu.Lock()
		listeners := slices.Clone(c.listeners)
		c.mu.Unlock()
		for _, l := range listeners {
			if l.cancelled() {
				continue
			}
			select {
			case <-l.acked:
			default:
				_ = c.wire.send(ctx.Done(), l.acknowledgement())
				close(l.acked)
			}
			c.mu.Lock()
			due := slices.Sorted(maps.Keys(l.due))
			clear(l.due)
			c.mu.Unlock()
			for _, method := range due {
				_ = c.wire.send(ctx.Done(), l.notification(method, nil))
			}
		}
	}
}

// cancelled reports whether the subscription was cancelled.
func (l *listener) cancelled() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// acknowledgement returns the notification of what of the subscription will be sent.
func (l *listener) acknowledgement() any {
	return l.notification(string(mcp.MethodNotificationSubscriptionsAcknowledged), mcp.SubscriptionFilter{
		ToolsListChanged:     l.wants[string(mcp.MethodNotificationToolsListChanged)],
		ResourcesListChanged: l.wants[string(mcp.MethodNotificationResourcesListChanged)],
	})
}

// notification returns a notification to the listener, with the id of its subscription if any.
func (l *listener) notification(method string, filter any) any {
	n := map[string]any{"jsonrpc": mcp.JSONRPC_VERSION, "method": method}
	if l.id != nil {
		params := map[string]any{"_meta": map[string]any{mcp.MetaKeySubscriptionID: l.id}}
		if filter != nil {
			params["notifications"] = filter
		}
		n["params"] = params
	}
	return n
}
