package client

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

const toolsChanged = "notifications/tools/list_changed"

// TestCancelledListener: a subscription that was cancelled, and not removed yet, hears nothing.
func TestCancelledListener(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, in := io.Pipe()
	lines := jsonrpc.NewLines(in, 0, nil)
	c := &Conn{rpc: jsonrpc.NewConn(t.Context(), lines, jsonrpc.Options{}), changes: make(chan struct{}, 1)}
	for id, over := range map[string]<-chan struct{}{"1": ctx.Done(), "2": nil} {
		c.listeners = append(c.listeners, &listener{
			id: json.RawMessage(id), out: c.rpc, acked: make(chan struct{}), over: over, due: map[string]bool{},
		})
	}
	ctx, cancel = context.WithCancel(t.Context())
	c.runs.Go(func() { c.announce(ctx) })
	c.changed(toolsChanged)
	said := bufio.NewScanner(out)
	for _, want := range []string{acknowledged, toolsChanged, toolsChanged} {
		if !said.Scan() || !strings.Contains(said.Text(), `"`+want+`"`) || !strings.Contains(said.Text(), `":2`) {
			t.Errorf("got %s, want %s of 2", said.Text(), want)
		}
		if want == toolsChanged {
			c.changed(toolsChanged)
		}
	}
	cancel()
	out.Close()
	c.runs.Wait()
	_ = lines.HangUp(ctx.Done(), 0)
}
