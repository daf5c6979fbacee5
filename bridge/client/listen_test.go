package client

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

const toolsChanged = "notifications/tools/list_changed"

// TestCancelledListener: a subscription that was cancelled, and not removed yet, hears nothing.
func TestCancelledListener(t *testing.T) {
	said := make(chan string, 1)
	out := writer(func(p []byte) (int, error) {
		said <- string(p)
		return len(p), nil
	})
	lines := jsonrpc.NewLines(out, 0, nil)
	c := &Conn{rpc: jsonrpc.NewConn(t.Context(), lines, jsonrpc.Options{})}
	l := &listener{id: json.RawMessage("1"), due: map[string]bool{}, wake: make(chan struct{}, 1)}
	c.subscribe(l, 1)
	c.changed(toolsChanged)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.announce(ctx, l, c.rpc)
	_ = lines.HangUp(ctx.Done(), 0)
	select {
	case line := <-said:
		t.Errorf("it heard %s", line)
	default:
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

var _ io.Writer = writer(nil)
