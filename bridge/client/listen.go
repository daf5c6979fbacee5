package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

// maxListeners is how many subscriptions a client may have at a time, and maxShared all those that
// share a Conn.
const (
	maxListeners = 16
	maxShared    = 256
)

const acknowledged = string(mcp.MethodNotificationSubscriptionsAcknowledged)

// listener is told of changes: of all for a client that has shaken hands, or of those that a
// subscription of 2026-07-28 asks for.
type listener struct {
	id    json.RawMessage // of the subscription's request; nil for the client that has shaken hands
	wants map[string]bool // by the notification's method; nil for all

	due  map[string]bool // what it isn't told yet; guarded by the Conn's mu
	wake chan struct{}   // holds one value when there is something due
}

// listenToAll adds the listener of a client without subscriptions.
func (c *Conn) listenToAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists || c.shared || c.rpc.Context().Err() != nil {
		return
	}
	c.lists = true
	l := &listener{due: map[string]bool{}, wake: make(chan struct{}, 1)}
	c.listeners = append(c.listeners, l)
	c.runs.Go(func() { c.announce(c.rpc.Context(), l, c.rpc) })
}

// listen answers subscriptions/listen when the subscription ends, by a cancel or with the
// connection. A subscription to no known change ends once it is acknowledged.
func (r *Request) listen(ctx context.Context) (any, error) {
	var p struct{ Notifications *mcp.SubscriptionFilter }
	if json.Unmarshal(r.rpc.Params, &p) != nil || p.Notifications == nil {
		return nil, &jsonrpc.Error{Code: mcp.INVALID_PARAMS,
			Message: "params.notifications must be an object of what to listen for"}
	}
	c := r.conn
	l := &listener{
		id: r.rpc.ID, wants: map[string]bool{}, due: map[string]bool{}, wake: make(chan struct{}, 1),
	}
	if p.Notifications.ToolsListChanged {
		l.wants[string(mcp.MethodNotificationToolsListChanged)] = true
	}
	if p.Notifications.ResourcesListChanged {
		l.wants[string(mcp.MethodNotificationResourcesListChanged)] = true
	}
	if most := c.maxListeners(); !c.subscribe(l, most) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeBusy,
			Message: fmt.Sprintf("there are %d subscriptions, which is the limit; cancel one", most)}
	}
	defer c.unsubscribe(l)
	_ = r.out.Notify(ctx, acknowledged, l.acknowledgement())
	if len(l.wants) > 0 {
		c.announce(ctx, l, r.out)
	}
	return map[string]any{
		"resultType": mcp.ResultTypeComplete,
		"_meta":      map[string]any{mcp.MetaKeySubscriptionID: l.id, mcp.MetaKeyServerInfo: c.clients.cfg.Self},
	}, nil
}

func (c *Conn) maxListeners() int {
	if c.shared {
		return maxShared
	}
	return maxListeners
}

func (c *Conn) subscribe(l *listener, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.listeners) >= most {
		return false
	}
	c.listeners = append(c.listeners, l)
	return true
}

func (c *Conn) unsubscribe(l *listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = slices.DeleteFunc(c.listeners, func(other *listener) bool { return other == l })
}

// changed queues a notification for each listener that subscribed to method. Repeated changes are
// sent once. It doesn't block.
func (c *Conn) changed(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.listeners {
		if l.wants != nil && !l.wants[method] {
			continue
		}
		l.due[method] = true
		select {
		case l.wake <- struct{}{}:
		default: // it will be seen anyway
		}
	}
}

// announce sends a listener what is queued for it until ctx ends.
func (c *Conn) announce(ctx context.Context, l *listener, out Writer) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		c.mu.Lock()
		due := slices.Sorted(maps.Keys(l.due))
		clear(l.due)
		c.mu.Unlock()
		for _, method := range due {
			_ = out.Notify(ctx, method, l.params(nil))
		}
	}
}

// acknowledgement returns the parameters that say what of the subscription will be sent.
func (l *listener) acknowledgement() any {
	return l.params(mcp.SubscriptionFilter{
		ToolsListChanged:     l.wants[string(mcp.MethodNotificationToolsListChanged)],
		ResourcesListChanged: l.wants[string(mcp.MethodNotificationResourcesListChanged)],
	})
}

// params returns the parameters of a notification, with the id of the subscription if any.
func (l *listener) params(filter any) any {
	if l.id == nil {
		return nil
	}
	p := map[string]any{"_meta": map[string]any{mcp.MetaKeySubscriptionID: l.id}}
	if filter != nil {
		p["notifications"] = filter
	}
	return p
}
