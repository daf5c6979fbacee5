package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// request sends one request and waits for its raw result until ctx ends; the server is then told that nobody waits. The
// error is ctx's, a *RPCError, a *backlogError, or what ended the session.
//
// Ids are strings of our own: mcp-go's typed methods, which number their requests, are not used after the handshake, for they
// lose a whole list over one odd schema, and an error's code and data.
func (s *session) request(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, over := s.asks.during(ctx)
	defer over()
	id := "b-" + strconv.FormatInt(s.ids.Add(1), 10)
	observer := Observer(ctx)
	if meta := s.metaFor(id, observer != nil); meta != nil {
		params["_meta"] = meta
	}
	s.in.expect(id, observer)
	defer s.in.forget(id)
	_, err := s.tr.SendRequest(ctx, transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(id), Method: method, Params: params,
	})
	var full *backlogError
	switch {
	case err == nil:
		return s.in.take(id)
	case ctx.Err() != nil:
		s.cancelled(ctx, id)
		return nil, ctx.Err()
	case errors.As(err, &full):
		return nil, full
	case errors.Is(err, transport.ErrTransportClosed):
		return nil, s.ended(ctx)
	default:
		return nil, err
	}
}

// metaFor is what a request carries beside its parameters. A request's id is its progress token.
func (s *session) metaFor(id string, progress bool) map[string]any {
	if !progress {
		return s.meta
	}
	meta := map[string]any{"progressToken": id}
	maps.Copy(meta, s.meta)
	return meta
}

// cancelled tells the server that a request isn't waited for any more. It doesn't block: nor does the outbox.
func (s *session) cancelled(ctx context.Context, id string) {
	_ = s.tr.SendNotification(context.WithoutCancel(ctx), mcp.JSONRPCNotification{
		JSONRPC: mcp.JSONRPC_VERSION,
		Notification: mcp.Notification{
			Method: string(mcp.MethodNotificationCancelled),
			Params: mcp.NotificationParams{AdditionalFields: map[string]any{"requestId": id, "reason": ctx.Err().Error()}},
		},
	})
}

// call calls one tool.
func (s *session) call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	switch {
	case len(args) == 0 || string(args) == "null":
		args = json.RawMessage("{}")
	case !json.Valid(args) || args[0] != '{':
		return nil, errors.New("the arguments are no JSON object")
	case !utf8.Valid(args):
		args = bytes.ToValidUTF8(args, []byte("\uFFFD"))
	}
	return s.request(ctx, string(mcp.MethodToolsCall), map[string]any{"name": tool, "arguments": args})
}

// wrap adds what this layer knows to an error of the session.
func (s *session) wrap(op string, err error) error {
	e := &ServerError{Server: s.server.Name, Op: op, Err: err}
	select {
	case <-s.over:
		if !errors.Is(s.cause, ErrClosed) && errors.Is(err, s.cause) {
			e.Stderr = s.said.tail()
		}
	default:
	}
	return e
}

func callOp(tool string) string { return fmt.Sprintf("calling the tool %q", tool) }
