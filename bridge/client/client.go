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
	maxMessage = 16 << 20 // bytes of one message of a client
	stopGrace  = 3 * time.Second

	// MaxRequests is how many requests of one client are worked on or wait at a time.
	MaxRequests = 256

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

// Conn is one client.
type Conn struct {
	clients *Clients
	rpc     *jsonrpc.Conn
	handle  Handler
	caller  Caller         // what initialize said; of the reading goroutine
	runs    sync.WaitGroup // one for each detached request
	changes chan struct{}  // holds one value when there is something to announce

	mu        sync.Mutex
	listeners []*listener
}

// Serve answers one client, whose messages come from in, one JSON object per line, and go to out.
// It returns when in ends (nil), ctx ends (its cause) or out takes no more (why). Calls that are
// under way then are cancelled and have ended when it returns. A Read of in or Write to out that
// can't be interrupted stays behind; a client that has stopped reading is given up after a few
// seconds, and one that reads slowly after half a minute. Serve may be called more than once, for
// several clients.
func (c *Clients) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := jsonrpc.NewLines(out, 0, nil)
	conn := &Conn{clients: c, changes: make(chan struct{}, 1)}
	conn.rpc = jsonrpc.NewConn(ctx, lines, jsonrpc.Options{
		MaxRequests: MaxRequests, Accept: conn.accept, Notified: conn.notified, Panicked: conn.panicked,
	})
	handle, gone := c.cfg.Connect(conn)
	conn.handle = handle
	c.conns.Store(conn, nil)
	defer c.conns.Delete(conn)
	conn.runs.Go(func() { conn.announce(conn.rpc.Context()) })
	err := conn.rpc.Serve(jsonrpc.NewReader(in, maxMessage), lines, stopGrace)
	gone(context.Cause(conn.rpc.Context()))
	conn.runs.Wait()
	return err
}

// A RefusedError is the JSON-RPC error with which a client answered.
type RefusedError struct {
	Code    int
	Message string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the client refused: %s (code %d)", e.Message, e.Code)
}

// Call sends the client a request, and returns its raw result. It blocks until ctx ends, which
// the client is told. The error is a *RefusedError or the cause of ctx's end.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	result, err := c.rpc.Call(ctx, c.rpc.NewID(), method, params)
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
		return func(context.Context) (any, error) { return nil, malformed(rpc.Err) }
	}
	r := &Request{Caller: c.caller, rpc: rpc, conn: c, out: c.rpc}
	_ = json.Unmarshal(rpc.Params, &r.params) // what a client gets wrong is found by who reads it
	if rpc.Method == string(mcp.MethodInitialize) && !rpc.Refused {
		r.Caller = r.params.introduced()
		c.caller = r.Caller
		c.rpc.AllowBatches(c.caller.batches)
	} else if mcp.IsModernProtocol(r.params.version()) {
		r.Caller = r.params.described()
	}
	if slices.ContainsFunc(c.clients.cfg.Ordered, r.Calls) {
		rpc.Order()
	}
	return func(ctx context.Context) (any, error) { return r.answer(ctx) }
}

// malformed returns the error of a message that can't be read.
func malformed(err error) error {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	var long *jsonrpc.TooLongError
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &long):
		e.Message += "; send less at a time"
	case errors.As(err, &syntax):
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
