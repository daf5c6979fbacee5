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

// maxListeners is how many subscriptions a client may have at a time.
const maxListeners = 16

const acknowledged = string(mcp.MethodNotificationSubscriptionsAcknowledged)

// listener is told of changes: of all for a client that has shaken hands, or of those that a
// subscription of 2026-07-28 asks for. due is guarded by the Conn's mu.
type listener struct {
	id    json.RawMessage // of the subscription's request; nil for the client that has shaken hands
	out   Writer
	wants map[string]bool // by the notification's method; nil for all
	acked chan struct{}   // closed when the subscription was acknowledged
	over  <-chan struct{} // closed when it was cancelled; nil for the client that has shaken hands

	due map[string]bool // what it isn't told yet
}

// listenToAll adds the listener of a client without subscriptions.
func (c *Conn) listenToAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.ContainsFunc(c.listeners, func(l *listener) bool { return l.id == nil }) {
		acked := make(chan struct{})
		close(acked)
		c.listeners = append(c.listeners, &listener{out: c.rpc, acked: acked, due: map[string]bool{}})
	}
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
		id: r.rpc.ID, out: r.out, over: ctx.Done(),
		wants: map[string]bool{}, acked: make(chan struct{}), due: map[string]bool{},
	}
	if p.Notifications.ToolsListChanged {
		l.wants[string(mcp.MethodNotificationToolsListChanged)] = true
	}
	if p.Notifications.ResourcesListChanged {
		l.wants[string(mcp.MethodNotificationResourcesListChanged)] = true
	}
	if !c.subscribe(l) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeBusy,
			Message: fmt.Sprintf("there are %d subscriptions, which is the limit; cancel one", maxListeners)}
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
	return map[string]any{
		"resultType": mcp.ResultTypeComplete,
		"_meta":      map[string]any{mcp.MetaKeySubscriptionID: l.id, mcp.MetaKeyServerInfo: c.clients.cfg.Self},
	}, nil
}

func (c *Conn) subscribe(l *listener) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.listeners) >= maxListeners {
		return false
	}
	c.listeners = append(c.listeners, l)
	c.wake()
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
		if l.wants == nil || l.wants[method] {
			l.due[method] = true
			c.wake()
		}
	}
}

func (c *Conn) wake() {
	select {
	case c.changes <- struct{}{}:
	default: // it will be seen anyway
	}
}

// announce sends queued notifications until ctx ends. No other goroutine sends them, so that each
// subscription is acknowledged first.
func (c *Conn) announce(ctx context.Context) {
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
				_ = l.out.Notify(ctx, acknowledged, l.acknowledgement())
				close(l.acked)
			}
			c.mu.Lock()
			due := slices.Sorted(maps.Keys(l.due))
			clear(l.due)
			c.mu.Unlock()
			for _, method := range due {
				_ = l.out.Notify(ctx, method, l.params(nil))
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
