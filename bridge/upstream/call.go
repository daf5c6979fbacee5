package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"
	"go.opentelemetry.io/otel/propagation"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

// request sends one request and waits for its raw result until ctx ends; the server is then told
// that nothing waits for it. Its errors are those of exchange.
func (s *session) request(
	ctx context.Context, method string, params map[string]any,
) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, over := s.questions.during(ctx)
	defer over()
	id := s.conn.NewID()
	observer := Observer(ctx)
	if meta := s.metaFor(ctx, id, observer != nil); meta != nil {
		params["_meta"] = meta
	}
	defer s.progress.observe(id, observer)()
	end := s.doubt.begin(ctx)
	result, err := s.exchange(ctx, id, method, params)
	end(err == nil || ctx.Err() == nil && !s.isDying())
	if err == nil || isA[*RPCError](err) {
		s.answered.Store(true)
	}
	return result, err
}

// exchange sends a request with an id and waits for its raw result. Its errors are those of
// explain.
func (s *session) exchange(
	ctx context.Context, id json.RawMessage, method string, params any,
) (json.RawMessage, error) {
	result, err := s.conn.Call(ctx, id, method, params)
	return result, s.explain(ctx, err)
}

// explain returns an error of the connection for a caller: ctx's, a *RPCError, an *exchangeError,
// or what ended the session.
func (s *session) explain(ctx context.Context, err error) error {
	var refusal *RPCError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		return s.masked(refusal)
	case ctx.Err() != nil:
		return ctx.Err()
	case isA[*exchangeError](err) && (!s.isDying() || !errors.Is(err, context.Canceled)):
		return err
	case s.isDying(), errors.Is(err, jsonrpc.ErrHungUp):
		return s.ended(ctx)
	default:
		return errors.New(s.mask.text(err.Error()))
	}
}

// masked returns an error of the server without secrets.
func (s *session) masked(e *RPCError) *RPCError {
	masked := &RPCError{Code: e.Code, Message: s.mask.text(e.Message)}
	if e.Data != nil {
		masked.Data = s.mask.json(e.Data)
	}
	return masked
}

// metaFor returns what a request carries beside its parameters. A request's id is its progress
// token; the trace that ctx belongs to, if any, is told as SEP-414 has it.
func (s *session) metaFor(ctx context.Context, id json.RawMessage, progress bool) map[string]any {
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

// work sends one request for a caller when it is that one's turn, and bounds how long the server
// may take, the answers to what it asks included. Its errors are those of converse.
func (s *session) work(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	switch err := s.limiter.enter(ctx, s.over); {
	case errors.Is(err, errLeft):
		return nil, s.ended(ctx)
	case err != nil:
		return nil, err
	}
	defer s.limiter.leave()
	bounded, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	result, err := s.converse(bounded, method, params)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("it did not answer within %v and was told to stop: %w", s.cfg.CallTimeout, err)
	}
	return result, err
}

// objectOf returns the arguments of a call as an object, in valid UTF-8.
func objectOf(args json.RawMessage) (json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	switch {
	case len(args) == 0 || string(args) == "null":
		return json.RawMessage("{}"), nil
	case !json.Valid(args) || args[0] != '{':
		return nil, errors.New("the arguments are no JSON object")
	}
	return bytes.ToValidUTF8(args, []byte("\uFFFD")), nil
}

// options are what a call has beside its arguments. They are one value of its context, so that
// the functions between the pool's methods and a session's requests don't have to pass them on.
type options struct {
	client    Client         // whom servers may ask; nil for none
	progress  func(Progress) // nil for none
	servers   *generation    // of the pool, as they were pinned; nil for the current ones
	principal string         // see WithPrincipal
}

type optionsKey struct{}

func optionsOf(ctx context.Context) options {
	o, _ := ctx.Value(optionsKey{}).(options)
	return o
}

// with returns ctx for a call with other options.
func with(ctx context.Context, change func(*options)) context.Context {
	o := optionsOf(ctx)
	change(&o)
	return context.WithValue(ctx, optionsKey{}, o)
}

// WithClient returns ctx for a method of Pool that is called for c.
func WithClient(ctx context.Context, c Client) context.Context {
	return with(ctx, func(o *options) { o.client = c })
}

// ClientOf returns the client that a call with this context is made for; nil for none.
func ClientOf(ctx context.Context) Client { return optionsOf(ctx).client }

// WithProgress returns ctx for a Call whose progress is to be told to f: the server is asked for it
// then, and only then.
//
// f is called in the order of the server's notifications, from one goroutine at a time, and no more
// once Call has returned. It must not block and must not use the pool: nothing else that the server
// says is heard meanwhile. A server may report as often as it likes.
func WithProgress(ctx context.Context, f func(Progress)) context.Context {
	return with(ctx, func(o *options) { o.progress = f })
}

// Observer returns what is told the progress of a call with this context; nil for nothing.
func Observer(ctx context.Context) func(Progress) { return optionsOf(ctx).progress }
