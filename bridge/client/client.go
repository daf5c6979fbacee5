// Package client answers MCP clients. It knows the versions of the protocol, what a client says of
// itself, and who wants to hear of progress and changes; mcp-go dispatches the methods. Connections
// are bridge/jsonrpc's and not mcp-go's own, whose stdio server loses a cancel while its call waits
// for a worker, stops reading when a queue is full, sends progress after the answer, and rounds ids
// beyond 53 bits.
//
// It knows nothing of what a tool does.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	// MaxMessage is how many bytes a message of a client may have.
	MaxMessage = 16 << 20

	stopGrace = 3 * time.Second

	// MaxRequests is how many requests of one client are worked on or wait at a time, and
	// MaxShared of all those that share a Conn.
	MaxRequests = 256
	MaxShared   = 1024

	// maxLogging bounds the lines on their way to the log. A log that isn't read holds up no more.
	maxLogging = 64
)

// A Handler answers a request. It ends soon after ctx.
type Handler func(ctx context.Context, r *Request) mcp.JSONRPCMessage

// Config is what Clients are made of. All fields are required.
type Config struct {
	Server *server.MCPServer // what Request.Dispatch calls
	Self   mcp.Implementation
	Log    *slog.Logger

	Tools   string   // which there are, for the error of an unknown one
	Ordered []string // the tools whose calls have a Turn

	// Connect returns what handles a new client's requests, and what is called when it is gone.
	Connect func(*Conn) (handle Handler, gone func(why error))
}

// Clients are all clients that are served. It is safe for concurrent use.
type Clients struct {
	cfg   Config
	conns sync.Map // *Conn → nothing

	logging chan struct{} // one value for each line on its way to the log
	lost    atomic.Int64
}

// New returns Clients.
func New(cfg Config) *Clients {
	return &Clients{cfg: cfg, logging: make(chan struct{}, maxLogging)}
}

// Changed sends a notification that a list has changed to the clients that want to know.
func (c *Clients) Changed(method string) {
	c.conns.Range(func(key, _ any) bool {
		key.(*Conn).changed(method)
		return true
	})
}

// ChangedFor does the same for a list of one principal's, which the others don't see.
func (c *Clients) ChangedFor(principal, method string) {
	c.conns.Range(func(key, _ any) bool {
		if conn := key.(*Conn); conn.Principal == principal {
			conn.changed(method)
		}
		return true
	})
}

// Log writes a line that no request waits for. Lines that the log doesn't take are left out, and
// counted in the next one that it takes.
func (c *Clients) Log(level slog.Level, message string, attrs ...any) {
	select {
	case c.logging <- struct{}{}:
	default:
		c.lost.Add(1)
		return
	}
	defer func() { <-c.logging }()
	if n := c.lost.Swap(0); n > 0 {
		attrs = append(attrs, "lines_lost", n)
	}
	c.cfg.Log.Log(context.Background(), level, message, attrs...)
}

// A Writer takes notifications to a client.
type Writer interface {
	Notify(ctx context.Context, method string, params any) error
}

// Local is the principal of who may use this machine: of each client of stdio, and of those of a
// listener on loopback that asks for no authentication.
const Local = "local"

// Conn is one client, or several that can't be told apart: those of a principal that send their
// requests one by one.
type Conn struct {
	Principal string // to whom what the client makes belongs; never empty
	Session   string // names the client in the log; empty for none
	Stdio     bool   // the client is the connection: it has no other, and doesn't come back

	clients *Clients
	rpc     *jsonrpc.Conn
	handle  Handler
	gone    func(why error)
	shared  bool
	caller  Caller         // what initialize said; of the reading goroutine
	runs    sync.WaitGroup // one for each detached request

	mu        sync.Mutex
	listeners []*listener
	lists     bool // one of them is that of the client that has shaken hands
}

// Serve answers one client, whose messages come from in, one JSON object per line, and go to out.
// It returns when in ends (nil), ctx ends (its cause) or out takes no more (why). Calls that are
// under way then are cancelled and have ended when it returns. A Read of in or Write to out that
// can't be interrupted stays behind; a client that has stopped reading is given up after a few
// seconds, and one that reads slowly after half a minute. Serve may be called more than once, for
// several clients.
func (c *Clients) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := jsonrpc.NewLines(out, 0, nil)
	conn := c.open(ctx, &Conn{Principal: Local, Stdio: true}, lines, nil)
	err := conn.rpc.Serve(jsonrpc.NewReader(in, MaxMessage), lines, stopGrace)
	conn.leave()
	return err
}

// Open returns a client of a transport that has no lines: its messages are handed to Deliver. What
// belongs to none of its requests goes to out, whose Post must not block. The capacity of encoded
// bounds the answers that wait to be taken, of all Conns that it is given. Close must be called.
func (c *Clients) Open(
	ctx context.Context, principal, session string, out jsonrpc.Carrier, encoded chan struct{},
) *Conn {
	return c.open(ctx, &Conn{Principal: principal, Session: session}, out, encoded)
}

// OpenShared is Open for the clients of a principal that send requests of 2026-07-28: each stands
// for itself, and their ids may be equal.
func (c *Clients) OpenShared(ctx context.Context, principal string, encoded chan struct{}) *Conn {
	return c.open(ctx, &Conn{Principal: principal, shared: true}, nowhere{}, encoded)
}

func (c *Clients) open(ctx context.Context, conn *Conn, out jsonrpc.Carrier, encoded chan struct{}) *Conn {
	conn.clients = c
	opts := jsonrpc.Options{
		MaxRequests: MaxRequests, Accept: conn.accept, Notified: conn.notified, Panicked: conn.panicked,
		Encoded: encoded,
	}
	if conn.shared {
		opts.Apart, opts.MaxRequests = true, MaxShared
	}
	conn.rpc = jsonrpc.NewConn(ctx, out, opts)
	conn.handle, conn.gone = c.cfg.Connect(conn)
	c.conns.Store(conn, nil)
	return conn
}

// nowhere is the Carrier of what belongs to no request where there is nothing of the kind.
type nowhere struct{}

func (nowhere) Send(context.Context, *jsonrpc.Message) error { return jsonrpc.ErrHungUp }
func (nowhere) Post(*jsonrpc.Message) bool                   { return true }

// Deliver handles one message of the client, as jsonrpc.Conn.Deliver does.
func (c *Conn) Deliver(ctx context.Context, text []byte, out jsonrpc.Carrier) (over <-chan struct{}) {
	return c.rpc.Deliver(ctx, text, out)
}

// Close ends the client's calls, with the cause why, and waits for them. Messages that still come
// are ignored.
func (c *Conn) Close(why error) {
	c.rpc.Close(why)
	c.rpc.Wait()
	c.leave()
}

// Shared reports whether the Conn is of several clients.
func (c *Conn) Shared() bool { return c.shared }

// Gone reports whether the client's calls have been ended.
func (c *Conn) Gone() bool { return c.rpc.Context().Err() != nil }

func (c *Conn) leave() {
	c.clients.conns.Delete(c)
	c.gone(context.Cause(c.rpc.Context()))
	c.WaitDetached()
}

// WaitDetached waits for requests that were detached.
func (c *Conn) WaitDetached() { c.runs.Wait() }

// A RefusedError is the JSON-RPC error with which a client answered.
type RefusedError struct {
	Code    int
	Message string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the client refused: %s (code %d)", e.Message, e.Code)
}

// Call sends the client a request that belongs to this one, and returns its raw result. It blocks
// until ctx ends, which the client is told. The error is a *RefusedError or the cause of ctx's end.
func (r *Request) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	result, err := r.rpc.Call(ctx, method, params)
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused):
		err = &RefusedError{refused.Code, text.Safe(refused.Message)}
	case errors.Is(err, jsonrpc.ErrNoResult):
		err = &RefusedError{jsonrpc.CodeInternal, err.Error()}
	}
	return result, err
}

// accept returns what answers a request, or says what is wrong with a message that isn't one.
func (c *Conn) accept(rpc *jsonrpc.Request) jsonrpc.Handler {
	if rpc.Err != nil {
		return func(context.Context) (any, error) { return nil, Malformed(rpc.Err) }
	}
	r := &Request{Caller: c.caller, rpc: rpc, conn: c, out: rpc}
	_ = json.Unmarshal(rpc.Params, &r.params) // what a client gets wrong is found by who reads it
	if rpc.Method == string(mcp.MethodInitialize) && !rpc.Refused && !c.shared {
		p := &r.params
		r.Caller = Caller{Capabilities: p.Capabilities, Name: nameOf(p.Client),
			NoLinks: p.Version < firstWithLinks, batches: p.Version == onlyWithBatches}
		c.caller = r.Caller
		c.rpc.AllowBatches(c.caller.batches)
	} else if mcp.IsModernProtocol(r.params.version()) {
		meta := r.params.Meta
		r.Caller = Caller{Capabilities: meta.Capabilities, Name: nameOf(meta.Client), Modern: true}
	}
	if !c.shared && slices.ContainsFunc(c.clients.cfg.Ordered, r.Calls) {
		rpc.Order()
	}
	return func(ctx context.Context) (any, error) { return r.answer(ctx) }
}

// Malformed returns the error of a message that can't be read.
func Malformed(err error) *jsonrpc.Error {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, new(*jsonrpc.TooLongError)):
		e.Message += "; send less at a time"
	case errors.As(err, new(*json.SyntaxError)):
		e.Code, e.Message = jsonrpc.CodeParse, "the message is not JSON: "+err.Error()
	case errors.As(err, &kind) && kind.Field == "":
		e.Message = "a message must be an object, not a JSON " + kind.Value
	case errors.As(err, &kind):
		e.Message = fmt.Sprintf("%s must not be a JSON %s", strings.ToLower(kind.Field), kind.Value)
	}
	return e
}

// notified takes a notification. Cancels are jsonrpc's.
func (c *Conn) notified(m *jsonrpc.Message) {
	if m.Method == "notifications/initialized" {
		c.listenToAll()
	}
}

// panicked returns the answer to a request whose handler has panicked.
func (c *Conn) panicked(r *jsonrpc.Request, value any, stack []byte) error {
	r.Afterwards(func() { c.logPanic(value, stack) })
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: failure(value)}
}

func (c *Conn) logPanic(value any, stack []byte) {
	said := fmt.Sprint(value)
	c.clients.Log(slog.LevelError, "a request has panicked", "panic", said, "stack", string(stack))
}

func failure(value any) string {
	return fmt.Sprintf("the bridge has failed on this request: %v", value)
}
