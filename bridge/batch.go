package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// batch collects the answers to several messages that came in one, as clients of 2025-03-26 may send them. It is safe for
// concurrent use.
type batch struct {
	mu      sync.Mutex
	answers []mcp.JSONRPCMessage
}

func (b *batch) add(m mcp.JSONRPCMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = append(b.answers, m)
}

// routeBatch routes the messages of a batch in their order. They are worked on at the same time, each in a place of its own,
// and answered together.
func (c *conn) routeBatch(ctx context.Context, text []byte) (answer func()) {
	var messages []json.RawMessage
	if err := json.Unmarshal(text, &messages); err != nil || len(messages) == 0 || len(messages) > maxRequests {
		return c.answer(ctx, &exchange{wire: c.wire}, func(context.Context) mcp.JSONRPCMessage {
			if err != nil {
				return rpcError(mcp.PARSE_ERROR, "the batch is no JSON")
			}
			return rpcError(mcp.INVALID_REQUEST, fmt.Sprintf("a batch has from 1 to %d messages", maxRequests))
		})
	}
	in := &batch{}
	var work sync.WaitGroup
	for _, m := range messages {
		if answer := c.route(ctx, m, in); answer != nil {
			work.Go(answer)
		}
	}
	return func() {
		work.Wait()
		if len(in.answers) > 0 {
			_ = c.wire.send(nil, in.answers)
		}
	}
}
