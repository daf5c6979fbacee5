package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// forwarder has one client answer what servers ask in the course of its calls. Two of the same client are equal.
type forwarder struct {
	client *asks // which one it is
	can    abilities
	roots  bool // servers may hear of the client's roots
}

// forwarding is ctx for the tool calls of a run, whose servers may ask the run's client, if there is one.
func (b *Bridge) forwarding(ctx context.Context) context.Context {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x == nil {
		return ctx
	}
	return upstream.WithClient(ctx, forwarder{client: x.client, can: x.can, roots: b.shareRoots})
}

// Abilities implements upstream.Client.
func (f forwarder) Abilities() upstream.Abilities {
	can := f.can
	return upstream.Abilities{Elicitation: can.form, ElicitationURL: can.url, Roots: can.roots && f.roots}
}

// Answer implements upstream.Client. The client is told which server asks.
func (f forwarder) Answer(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case string(mcp.MethodElicitationCreate):
	case string(mcp.MethodListRoots):
		if !f.roots {
			return nil, &upstream.RPCError{Code: mcp.METHOD_NOT_FOUND, Message: "the client's roots are not shared with servers"}
		}
		return told(askClient(ctx, serverAsks, method, nil))
	default:
		return nil, &upstream.RPCError{Code: mcp.METHOD_NOT_FOUND, Message: "the client doesn't support " + text.Line(method)}
	}
	fields, err := question(server, params)
	if err != nil {
		return nil, err
	}
	return told(askClient(ctx, serverAsks, method, fields))
}

// told is an answer as a server is told of it.
func told(result json.RawMessage, err error) (json.RawMessage, error) {
	var refused *clientError
	switch {
	case errors.As(err, &refused):
		return nil, &upstream.RPCError{Code: refused.code, Message: refused.message}
	case errors.Is(err, errCannotAsk):
		return nil, &upstream.RPCError{Code: mcp.METHOD_NOT_FOUND, Message: err.Error()}
	}
	return result, err
}

func invalidQuestion(format string, a ...any) error {
	return &upstream.RPCError{Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf(format, a...)}
}

// encode is v, of strings and JSON, as JSON.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // these always encode
	}
	return raw
}
