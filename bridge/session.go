package bridge

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/client"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// maxParked is how many calls of one client may wait for answers, and maxParkedShared those of all
// that share a connection.
const (
	maxParked       = 16
	maxParkedShared = 256
)

// session is one client of the bridge, and how it is asked; or several that share a connection.
type session struct {
	bridge *Bridge
	asks   *elicit.Client
	parked *elicit.Parking
	shared bool
	owner  string // of the client's sandboxes
	own    string // names the sandbox of those of its calls that name none
}

// connect returns what answers a new client. Over HTTP its sandboxes are its principal's, since
// another session may be the same client; over stdio they end with the connection, and are its own
// unless they are saved then, for the user's next one.
func (b *Bridge) connect(c *client.Conn) (client.Handler, func(error)) {
	most := maxParked
	if c.Shared() {
		most = maxParkedShared
	}
	s := &session{
		bridge: b, asks: elicit.NewClient(), shared: c.Shared(),
		parked: elicit.NewParking(b.self, most, b.cfg.Replica.Suffix(), b.cfg.Log),
		owner:  c.Principal, own: randomID(),
	}
	if s.shared { // it ends by itself, and its principal's next connection finds it, or why it has ended
		s.own = "of " + c.Principal
	}
	switch {
	case c.Stdio && !b.cfg.Sandboxes.Hibernates():
		s.owner = s.own
	// Local may be any user of the machine: what was saved over stdio isn't theirs.
	case !c.Stdio && c.Principal == client.Local:
		s.owner = "http " + client.Local
	}
	return s.handle, func(why error) {
		s.parked.Close(why)
		s.endSandboxes(c.Stdio)
		c.WaitDetached()
		s.endSandboxes(c.Stdio) // what a call has begun meanwhile
	}
}

// request is a request of a client as the bridge's tools see it. A run that no MCP client asked for
// has a clock alone.
type request struct {
	*client.Request
	asker  *elicit.Asker
	client *session
	clock  *sandbox.Clock // of the run
}

type requestKey struct{}

// requestOf returns the request whose handler has ctx. mcp-go hands its handlers nothing else that
// could hold it.
func requestOf(ctx context.Context) request {
	r, _ := ctx.Value(requestKey{}).(request)
	return r
}

// name returns what the client calls itself, or that there is a command in its place.
func (r request) name() string {
	if r.Request == nil {
		return audit.Command
	}
	return r.Name
}

// whose returns who has asked, for the log: what is known beside that it may use this machine.
func (r request) whose() (about []any) {
	if r.Principal() != Local {
		about = append(about, "principal", r.Principal())
	}
	if session := r.Session(); session != "" {
		about = append(about, "session", session)
	}
	if name := r.LogName(); name != "" {
		about = append(about, "request", name)
	}
	return about
}

// share returns whose share of the runs the request takes; nothing for who may use this machine.
func (r request) share() string {
	if r.Principal() == Local {
		return ""
	}
	return r.Principal()
}

// handle answers a request. It implements client.Handler.
func (s *session) handle(ctx context.Context, r *client.Request) mcp.JSONRPCMessage {
	if answer := s.conform(ctx, r); answer != nil {
		return answer
	}
	if answer := elsewhere(s.bridge.cfg.Replica, r); answer != nil {
		return answer
	}
	can := elicit.Declared(r.Capabilities)
	if !r.Modern {
		return s.dispatch(ctx, r, can, s.asks.Channel(can, r.Call))
	}
	can.Roots = false // deprecated in these versions
	if r.Calls(catalog.RunPython) && r.HasMeta() {
		attempt, err := elicit.ReadAttempt(r.Text())
		switch {
		case err != nil:
			return client.Refuse(mcp.INVALID_PARAMS, err.Error())
		case can.Form || can.URL || attempt.Again:
			return s.converse(ctx, r, attempt, can)
		}
	}
	return s.dispatch(ctx, r, can, nil)
}

// dispatch has the handler of a tool, prompt or resource answer a request whose client is asked
// through channel.
func (s *session) dispatch(ctx context.Context, r *client.Request, can elicit.Abilities,
	channel elicit.Channel) mcp.JSONRPCMessage {
	clock := &sandbox.Clock{}
	wait := func() func() { // the time that a person takes isn't the code's
		resume, answered := clock.Stop(), r.Waits()
		return func() {
			answered()
			resume()
		}
	}
	asker := &elicit.Asker{Can: can, Channel: channel, Modern: r.Modern, Wait: wait}
	return r.Dispatch(context.WithValue(ctx, requestKey{}, request{r, asker, s, clock}))
}

// converse answers a call of run_python whose client can be asked in results, the first time and
// each time it comes again. The code runs apart from these requests.
func (s *session) converse(ctx context.Context, r *client.Request, a elicit.Attempt,
	can elicit.Abilities) mcp.JSONRPCMessage {
	var d *elicit.Dialogue
	if a.Again {
		r.Turn().Pass() // calls behind it don't wait until this one is over
		var err error
		if d, err = s.parked.Resume(a, can); err != nil {
			return client.Refuse(mcp.INVALID_PARAMS, err.Error())
		}
	} else {
		run := r.Detach()
		d = s.parked.Begin(a, can, run)
		run.Go(func(ctx context.Context, run *client.Request) mcp.JSONRPCMessage {
			return s.dispatch(ctx, run, can, d)
		}, d.Finish)
	}
	run := d.Run.(*client.Request)
	if a.Again {
		run.ReportTo(r)
	}
	questions, answer := d.Attend(ctx)
	if questions != nil {
		run.ReportTo(nil)
		return mcp.NewJSONRPCResultResponse(mcp.RequestId{}, questions)
	}
	return answer
}

// forwarder has one client answer what servers ask in the course of its calls. Two of the same
// client are equal; of clients that share a connection, and so can't be told apart, those of the
// same request.
type forwarder struct {
	client *session
	shared *client.Request // nil where the client has its connection for itself
	can    elicit.Abilities
	roots  bool // servers may hear of the client's roots
}

// forwarding returns ctx for calls of servers which may ask the client of r, if there is one.
func (r request) forwarding(ctx context.Context) context.Context {
	if r.Request == nil {
		return ctx
	}
	f := forwarder{client: r.client, can: r.asker.Can, roots: r.client.bridge.cfg.ShareRoots}
	if r.client.shared {
		f.shared = r.Request
	}
	return upstream.WithClient(ctx, f)
}

// Abilities implements upstream.Client.
func (f forwarder) Abilities() upstream.Abilities {
	return upstream.Abilities{Elicitation: f.can.Form, ElicitationURL: f.can.URL, Roots: f.can.Roots && f.roots}
}

// Answer implements upstream.Client. The client is told which server asks.
func (f forwarder) Answer(ctx context.Context, server, method string,
	params json.RawMessage) (json.RawMessage, error) {
	refuse := func(code int, why string) (json.RawMessage, error) {
		return nil, &upstream.RPCError{Code: code, Message: why}
	}
	var asked any
	switch method {
	case string(mcp.MethodElicitationCreate):
		question, err := elicit.Question(server, params)
		if err != nil {
			return refuse(mcp.INVALID_PARAMS, err.Error())
		}
		asked = question
	case string(mcp.MethodListRoots):
		if !f.roots {
			return refuse(mcp.METHOD_NOT_FOUND, "the client's roots are not shared with servers")
		}
	default:
		return refuse(mcp.METHOD_NOT_FOUND, "the client doesn't support "+text.Line(method))
	}
	result, err := requestOf(ctx).asker.Ask(ctx, elicit.ByServer, method, asked)
	var refused *client.RefusedError
	switch {
	case errors.As(err, &refused):
		return refuse(refused.Code, refused.Message)
	case errors.Is(err, elicit.ErrCannotAsk):
		return refuse(mcp.METHOD_NOT_FOUND, err.Error())
	}
	return result, err
}
