package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// maxQuestionText bounds what a server has to say to a person, in bytes; of more the beginning is shown.
const maxQuestionText = 4000

// forwarder has one client answer what servers ask in the course of its calls. Two of the same client are equal.
type forwarder struct {
	asks  *asks
	roots bool // servers may hear of the client's roots
}

// forwarding is ctx for the tool calls of a run, whose servers may ask the run's client, if there is one.
func (b *Bridge) forwarding(ctx context.Context) context.Context {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x == nil || x.modern {
		return ctx
	}
	return upstream.WithClient(ctx, forwarder{asks: x.asks, roots: b.shareRoots})
}

// Abilities implements upstream.Client.
func (f forwarder) Abilities() upstream.Abilities {
	can := f.asks.able()
	return upstream.Abilities{Elicitation: can.form, ElicitationURL: can.url, Sampling: can.sampling, Roots: can.roots && f.roots}
}

// Answer implements upstream.Client. The client is told which server asks.
func (f forwarder) Answer(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	if method == string(mcp.MethodListRoots) {
		if !f.roots {
			return nil, &upstream.RPCError{Code: mcp.METHOD_NOT_FOUND, Message: "the client's roots are not shared with servers"}
		}
		return told(askClient(ctx, serverAsks, method, nil))
	}
	fields, err := question(server, method, params)
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

// question is a server's request as the client is sent it: with the server's name, and without what would have the answer come by
// another way than this one.
func question(server, method string, params json.RawMessage) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if bytes.HasPrefix(bytes.TrimSpace(params), []byte("{")) {
		if err := json.Unmarshal(params, &fields); err != nil {
			return nil, invalidQuestion("its parameters can't be read: %v", err)
		}
	}
	if fields == nil {
		return nil, invalidQuestion("its parameters are no object")
	}
	delete(fields, "task")
	fields["_meta"] = encode(map[string]string{"mcp-bridge/server": printable(server)})
	if method == string(mcp.MethodSamplingCreateMessage) {
		if given(fields["tools"]) != nil || given(fields["toolChoice"]) != nil {
			return nil, invalidQuestion("sampling with tools was not declared")
		}
		return fields, nil
	}
	var text string
	if json.Unmarshal(fields["message"], &text) != nil {
		return nil, invalidQuestion("it has no message")
	}
	if text = printable(text); len(text) > maxQuestionText {
		text = string(bytes.ToValidUTF8([]byte(text[:maxQuestionText]), nil)) + " […]"
	}
	fields["message"] = encode(fmt.Sprintf("The MCP server %q asks, by way of mcp-bridge: %s", printable(server), text))
	return fields, nil
}

func invalidQuestion(format string, a ...any) error {
	return &upstream.RPCError{Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf(format, a...)}
}

// encode is v, of strings, as JSON.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings always encode
	}
	return raw
}
