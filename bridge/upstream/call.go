package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"go.opentelemetry.io/otel/propagation"
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
	defer s.used(ctx)()
	ctx, over := s.asks.during(ctx)
	defer over()
	id := s.newID()
	observer := Observer(ctx)
	if meta := s.metaFor(ctx, id, observer != nil); meta != nil {
		params["_meta"] = meta
	}
	s.in.expect(id, observer)
	defer s.in.forget(id)
	_, err := s.tr.SendRequest(ctx, transport.JSONRPCRequest{
		JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(id), Method: method, Params: params, Header: s.header(ctx, method, params),
	})
	var full *backlogError
	var failed *exchangeError
	switch {
	case err == nil:
		s.useful.Store(true)
		return s.in.take(id)
	case endOf(ctx) != nil:
		s.cancelled(ctx, id)
		return nil, endOf(ctx)
	case errors.As(err, &full):
		return nil, full
	case errors.As(err, &failed) && !s.cut(failed):
		return nil, failed.err
	case errors.Is(err, transport.ErrTransportClosed), s.isDying():
		return nil, s.ended(ctx)
	default:
		return nil, errors.New(s.mask.text(err.Error()))
	}
}

// used says that the session is used until done is called. What it does of itself is no use: a server that says again and again that its
// tools have changed would never be at rest.
func (s *session) used(ctx context.Context) (done func()) {
	if isOwnWork(ctx) {
		return func() {}
	}
	return s.rest.use()
}

// newID is the id of one request.
func (s *session) newID() string { return "b-" + strconv.FormatInt(s.ids.Add(1), 10) }

// metaFor is what a request carries beside its parameters. A request's id is its progress token; the trace that ctx belongs to, if
// any, is told as SEP-414 has it.
func (s *session) metaFor(ctx context.Context, id string, progress bool) map[string]any {
	traced := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, traced)
	if !progress && len(traced) == 0 && s.meta == nil {
		return nil
	}
	meta := map[string]any{}
	for k, v := range traced {
		meta[k] = v
	}
	if progress {
		meta["progressToken"] = id
	}
	maps.Copy(meta, s.meta)
	if s.meta != nil { // the newer protocol says with each request what its client can
		meta[mcp.MetaKeyClientCapabilities] = able(ctx).capabilities()
	}
	return meta
}

// inHeaders reports whether requests are described in headers too: by the newer protocol, over HTTP.
func (s *session) inHeaders() bool { return s.meta != nil && s.peer.left() == nil }

// header is what the newer protocol wants said in HTTP headers beside the message; nil for nothing.
func (s *session) header(ctx context.Context, method string, params map[string]any) http.Header {
	if !s.inHeaders() {
		return nil
	}
	version, _ := s.meta[mcp.MetaKeyProtocolVersion].(string)
	raw, err := json.Marshal(params)
	if err != nil {
		return nil // SendRequest says so
	}
	h := http.Header{}
	for name, value := range mcp.StandardHeaders(version, mcp.MCPMethod(method), raw) {
		h.Set(name, value)
	}
	if name, ok := params["name"].(string); ok && method == string(mcp.MethodToolsCall) {
		for name, value := range mcp.GenerateParamHeaders(s.definition(ctx, name), raw) {
			h.Set(name, value)
		}
	}
	return h
}

// definition is a tool as it was last listed, for the arguments that it wants in headers; nil where it wasn't.
func (s *session) definition(ctx context.Context, tool string) *mcp.Tool {
	select {
	case s.tools.turn <- struct{}{}:
		defer func() { <-s.tools.turn }()
	case <-ctx.Done():
		return nil
	}
	for _, t := range s.tools.list {
		if t.Name == tool && t.Invalid == "" && bytes.Contains(t.InputSchema, []byte(`"x-mcp-header"`)) {
			return &mcp.Tool{Name: t.Name, RawInputSchema: t.InputSchema}
		}
	}
	return nil
}

// endOf is why ctx has ended. mcp-go has a timer of its own for the same deadline, which may fire a little before.
func endOf(ctx context.Context) error {
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) && ctx.Err() == nil {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// cancelled tells the server that a request isn't waited for any more.
func (s *session) cancelled(ctx context.Context, id string) {
	s.peer.post(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"requestId":%q,"reason":%q}}`+"\n",
		mcp.MethodNotificationCancelled, id, endOf(ctx)))
}

// work sends one request for a caller when it is that one's turn, and bounds how long the server may take, the answers to what it asks
// included. Its errors are those of converse.
func (s *session) work(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	switch err := s.turns.enter(ctx, s.over); {
	case errors.Is(err, errLeft):
		return nil, s.ended(ctx)
	case err != nil:
		return nil, err
	}
	defer s.turns.leave()
	defer s.used(ctx)() // also while somebody thinks about an answer
	bounded, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	result, err := s.converse(bounded, method, params)
	if errors.Is(err, context.DeadlineExceeded) && endOf(ctx) == nil {
		return nil, fmt.Errorf("it did not answer within %v and was told to stop: %w", s.cfg.CallTimeout, err)
	}
	return result, err
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
	return s.work(ctx, string(mcp.MethodToolsCall), map[string]any{"name": tool, "arguments": args})
}

// wrap adds what this layer knows to an error of the session.
func (s *session) wrap(op string, err error) error {
	e := &ServerError{Server: s.server.Name, Op: op, Err: err}
	select {
	case <-s.over:
		if !errors.Is(s.cause, ErrClosed) && errors.Is(err, s.cause) {
			e.Err = onlyAfter(err, s.pause())
			e.Stderr, e.Logged = s.peer.said(), s.journal.tail()
		}
	default:
	}
	return e
}

const opStart = "starting it"

func callOp(tool string) string { return fmt.Sprintf("calling the tool %q", tool) }
