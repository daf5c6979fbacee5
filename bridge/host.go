package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/client"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// host answers the tool calls of one run: for the servers of that run and for nothing else,
// whatever the guest asks for. It is safe for concurrent use; a slow server holds up only the calls
// that ask for it.
type host struct {
	catalog   *catalog.Catalog
	view      catalog.View // of this run, for its servers and for nothing else
	upstreams Upstreams
	asker     *elicit.Asker    // of this run
	clock     *sandbox.Clock   // likewise
	progress  *client.Progress // of this run, for its client; nil when that didn't ask
	permits   *permits         // of this run
	starts    *elicit.Starts
	run       string // its id
	principal string // whose it is
	auditor   auditor
	calls     *atomic.Int64 // that were recorded
	telemetry *telemetry
	execution *execution // nil where no code is run
	login     Login      // nil: the user logs in by a command
	logins    *logins    // of this run
}

// host returns the host side of the run, which ends with ctx.
func (r *run) host(ctx context.Context, e *execution) *host {
	b, a, of := r.bridge, r.args, r.request
	h := &host{
		catalog: a.catalog, upstreams: b.cfg.Upstreams, asker: of.asker, clock: of.clock, progress: r.progress,
		permits: r.permits(), starts: b.starts, run: r.id, auditor: r.auditor, calls: &r.calls,
		telemetry: b.telemetry, execution: e, logins: &logins{run: ctx, all: map[string]*login{}},
		principal: of.Principal(),
	}
	if h.principal == Local { // another would log in for all of them, at a page that is shown elsewhere
		h.login = b.cfg.Login
	}
	h.view = catalog.View{
		Catalog: a.catalog, Allowed: a.servers, Tools: h.tools, Reason: reason,
		Running: func(ctx context.Context, s catalog.Server) bool { return h.upstreams.Running(ctx, s.Name) },
		List: func(ctx context.Context, s catalog.Server) ([]upstream.Tool, error) {
			defer h.clock.Stop()() // starting servers is not the code's own time
			return h.upstreams.Tools(ctx, s.Name)
		},
	}
	return h
}

// Call implements sandbox.Host. Every error but that of a result's encoding is an
// *entrypoint.CallError. A panic is the error of its own call: this runs on a goroutine of the
// sandbox, where it would end the bridge with all runs.
func (h *host) Call(ctx context.Context, c sandbox.Call) (result json.RawMessage, err error) {
	defer func() {
		if r := recover(); r != nil {
			h.auditor.log.Error("a tool call has panicked", "server", c.Provider, "tool", c.Tool,
				"panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			result, err = nil, &entrypoint.CallError{Code: entrypoint.CodeInternal,
				Message: fmt.Sprintf("the bridge has failed on the call of %q of server %q, "+
					"which is a bug of the bridge; its log says more: %v", c.Tool, c.Provider, r)}
		}
	}()
	if c.Provider == entrypoint.RuntimeProvider {
		return h.runtimeTool(ctx, c)
	}
	return recorded(ctx, h, c.Provider, c.Tool,
		func(ctx context.Context, r *audit.Record) (json.RawMessage, error) {
			h.auditor.arguments(r, c.Input)
			res, err := h.callTo(ctx, r, c)
			r.ResultBytes = len(res)
			return res, err
		})
}

// callTo calls a tool by its alias or real name.
func (h *host) callTo(ctx context.Context, r *audit.Record, c sandbox.Call) (json.RawMessage, error) {
	s, err := h.view.Server(c.Provider)
	if err != nil {
		return nil, err
	}
	r.Server = s.Name
	args, err := object(c.Input)
	if err != nil {
		return nil, err
	}
	t, err := h.tools(ctx, s)
	if err != nil {
		return nil, err
	}
	r.Tool = t.Real(c.Tool)
	tool, ok := t.Find(c.Tool)
	if !ok {
		if d, denied := t.Denied(c.Tool); denied {
			judged(r, d)
		}
		return nil, t.NoTool(c.Tool)
	}
	if err := h.permits.decide(ctx, r, s, tool, args, h.catalog.Judge(s.Name, tool)); err != nil {
		return nil, err
	}
	ask := func(ctx context.Context) (json.RawMessage, error) {
		return h.upstreams.Call(h.observed(ctx, s, tool.Name, c.Progress), s.Name, tool.Name, args)
	}
	res, err := withLogin(ctx, h, s, func() (json.RawMessage, error) {
		return upstreamSpan(ctx, h.telemetry, s.Name, "tools/call", tool.Name, ask)
	})
	if err != nil {
		return nil, callError(ctx, s, err)
	}
	if h.principal == Local || !h.catalog.Definitions()[s.Name].Isolate { // others' data is named there
		h.catalog.Note(s, tool, res)
	}
	return res, nil
}

// observed returns ctx for a call of a tool whose progress is told to the code and to the run's
// client, to each if it has asked. When neither has, the server isn't asked.
func (h *host) observed(
	ctx context.Context, s catalog.Server, tool string, toCode func(sandbox.Progress),
) context.Context {
	if toCode == nil && h.progress == nil {
		return ctx
	}
	return upstream.WithProgress(ctx, func(p upstream.Progress) {
		if toCode != nil {
			toCode(sandbox.Progress(p))
		}
		h.progress.Tool(fmt.Sprintf("%s.%s: %s", s.Name, tool, howFar(p)))
	})
}

// tools asks the server, which answers from memory while its session lives.
func (h *host) tools(ctx context.Context, s catalog.Server) (*catalog.Toolset, error) {
	if err := h.allowed(ctx, s); err != nil {
		return nil, err
	}
	defer h.clock.Stop()() // to start it, and to make aliases, is not the code's own time
	tools, err := withLogin(ctx, h, s, func() ([]upstream.Tool, error) { return h.upstreams.Tools(ctx, s.Name) })
	if err != nil {
		return nil, callError(ctx, s, err)
	}
	return h.catalog.Listed(s, tools), nil
}

// object returns the arguments of a tool. None count as no arguments.
func object(input json.RawMessage) (json.RawMessage, error) {
	input = bytes.TrimSpace(input)
	switch {
	case len(input) == 0 || string(input) == "null":
		return json.RawMessage("{}"), nil
	case input[0] != '{' || !json.Valid(input):
		return nil, invalid("a tool's arguments must be an object, not %s", args.Kind(input))
	}
	return input, nil
}

func invalid(format string, a ...any) error {
	return &entrypoint.CallError{Code: entrypoint.CodeValidation, Message: fmt.Sprintf(format, a...)}
}

// codeInvalidParams is JSON-RPC's code for bad arguments.
const codeInvalidParams = -32602

// callError makes an upstream's error one for the code that called. What the server wrote to its
// stderr stays outside: it may hold secrets.
func callError(ctx context.Context, s catalog.Server, err error) *entrypoint.CallError {
	if known, ok := errors.AsType[*entrypoint.CallError](err); ok {
		return known
	}
	said := fmt.Sprintf("server %q: %s", s.Name, text.Safe(reason(s, err)))
	e := &entrypoint.CallError{Code: entrypoint.CodeTool, Message: said}
	var rpc *upstream.RPCError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Code = entrypoint.CodeTimeout
	case ctx.Err() != nil:
		e.Code = entrypoint.CodeCancelled
		e.Message = fmt.Sprintf("server %q: the run has ended before the answer came", s.Name)
	case errors.Is(err, upstream.ErrClosed):
		e.Code, e.Message = entrypoint.CodeInternal, "the bridge is shutting down"
	case errors.As(err, &rpc):
		if rpc.Code == codeInvalidParams {
			e.Code = entrypoint.CodeValidation
		}
		data, merr := json.Marshal(struct {
			Code int             `json:"code"`
			Data json.RawMessage `json:"data,omitempty"`
		}{rpc.Code, rpc.Data})
		if merr == nil {
			e.Data = data
		}
	}
	return e
}

// reason returns an upstream's error without what its server wrote to stderr, but with what shows
// it.
func reason(s catalog.Server, err error) string {
	var e *upstream.ServerError
	if !errors.As(err, &e) || e.Err == nil {
		return err.Error()
	}
	text := strings.TrimPrefix(e.Op+": "+e.Err.Error(), ": ")
	switch {
	case e.Stderr == "" && e.Logged == "":
	case !e.Starting():
		text += " (the bridge's log has the last lines that it wrote to stderr)"
	default:
		text += fmt.Sprintf(" (`mcp-bridge tools %q` shows what it wrote to stderr)", s.Name)
	}
	return text
}

// howFar returns what a server says of a call's progress, on one line.
func howFar(p upstream.Progress) string {
	switch {
	case p.Message != "":
		return text.Line(p.Message)
	case p.Total != nil:
		return fmt.Sprintf("%g of %g", p.Progress, *p.Total)
	}
	return fmt.Sprintf("%g", p.Progress)
}

// allowed asks the user for a server of this run that was held when the run began.
func (h *host) allowed(ctx context.Context, s catalog.Server) error {
	if !s.Held {
		return nil
	}
	ask := h.asker.Consent
	if h.principal != Local { // it would be started as the machine's user
		ask = func(context.Context, map[string]any) (json.RawMessage, error) {
			return nil, fmt.Errorf("%w: only who runs the bridge can approve it", elicit.ErrCannotAsk)
		}
	}
	return h.starts.Allow(ctx, h.catalog.Definitions()[s.Name], ask)
}
