package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const (
	// maxMessage bounds one message of the client, in bytes.
	maxMessage = 16 << 20

	// maxRequests is how many requests of a client are worked on or wait at a time; further ones are refused. So reading goes on,
	// and a cancel behind them is seen. Only a client that leaves as many refusals unread isn't read from any more.
	maxRequests = 256

	// codeBusy is a code of JSON-RPC's range for implementations.
	codeBusy = -32000

	// stopGrace is how long Serve waits, once it is to end, for a client that doesn't read what it is sent.
	stopGrace = 3 * time.Second
)

var (
	errClientGone = errors.New("the client has ended the connection")
	errCancelled  = errors.New("the client has cancelled the call")
)

// conn is one client. mcp-go answers the messages; reading, writing and cancelling is done here and not by its own stdio server, where
// a cancel is lost while the call waits for a worker, a full queue stops the reading, progress comes after the answer,
// and ids beyond 53 bits are rounded.
type conn struct {
	server  *server.MCPServer
	wire    *wire
	asks    *asks // our requests to the client
	parked  *parking
	teller  *teller
	slots   chan struct{}  // one per request under way
	changes chan struct{}  // there is something to announce
	refuse  chan struct{}  // one per refusal that is being sent
	work    sync.WaitGroup // one per each of both, and per message
	words   sync.WaitGroup // one per request of which something is said once it is answered

	client caller          // what the client has said of itself in initialize; of the reading goroutine
	last   <-chan struct{} // closed when the last call of run_python has come to the queue; likewise

	mu        sync.Mutex
	calls     map[string]*exchange // under way, by request id as the client wrote it
	listeners []*listener
	over      bool // no message is taken any more
}

// Serve answers one client, whose messages come from in, one JSON object per line, and go to out. Nothing else writes to out.
// It returns when in ends (nil), ctx ends (its cause) or out takes no more (why). Calls that are under way then are cancelled and
// have ended when it returns. Where a Read of in or a Write to out can't be interrupted, that one call stays behind; a client
// that has stopped reading is given up after a few seconds. Serve may be called more than once, for several clients.
func (b *Bridge) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := newWire(out)
	c := &conn{
		server: b.server, wire: w, asks: newAsks(w), teller: b.teller, calls: map[string]*exchange{}, parked: newParking(b.self, b.log),
		slots: make(chan struct{}, maxRequests), refuse: make(chan struct{}, maxRequests), changes: make(chan struct{}, 1),
	}
	b.conns.Store(c, nil)
	defer b.conns.Delete(c)
	c.work.Go(func() { c.announce(ctx) })
	ended := make(chan error, 1)
	go c.read(ctx, bufio.NewReaderSize(in, 64<<10), ended)

	var err error
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-w.ended: // hangUp says why
	case err = <-ended:
	}
	end(errClientGone)
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.parked.close()
	worked := make(chan struct{})
	go func() {
		c.work.Wait()
		close(worked)
	}()
	hung := c.drain(worked)
	<-worked
	c.waitForWords()
	if err == nil {
		err = hung
	}
	return err
}

// waitForWords waits until the log has taken what was said of answered requests, but for a log that takes nothing no longer than for a client
// that doesn't read.
func (c *conn) waitForWords() {
	said := make(chan struct{})
	go func() {
		c.words.Wait()
		close(said)
	}()
	late := time.NewTimer(stopGrace)
	defer late.Stop()
	select {
	case <-said:
	case <-late.C:
	}
}

// drain hangs up when all answers are out, or when the client doesn't take them: senders are let go then.
func (c *conn) drain(worked <-chan struct{}) error {
	tick := time.NewTicker(stopGrace / 4)
	defer tick.Stop()
	for {
		select {
		case <-worked:
			return c.wire.hangUp(stopGrace)
		case <-c.wire.ended:
			return c.wire.hangUp(stopGrace)
		case <-tick.C:
			if c.wire.stuck(stopGrace) {
				return c.wire.hangUp(stopGrace)
			}
		}
	}
}

// read takes messages until in ends or fails, which it tells, or the connection is over. Whoever has read a request answers it, and leaves
// the reading to a new goroutine: between the client's line and the tool no other thread has to be woken, and what waits for one is
// the reading.
func (c *conn) read(ctx context.Context, in *bufio.Reader, ended chan<- error) {
	for {
		text, err := readLine(in, maxMessage)
		var long *tooLongError
		tooLong := errors.As(err, &long)
		switch {
		case errors.Is(err, io.EOF):
			ended <- nil
			return
		case err != nil && !tooLong:
			ended <- fmt.Errorf("reading from the client: %w", err)
			return
		case !c.begins():
			return
		}
		var answer func()
		switch {
		case tooLong:
			answer = c.answer(ctx, &exchange{wire: c.wire, id: long.id}, func(context.Context) mcp.JSONRPCMessage {
				return rpcError(mcp.INVALID_REQUEST, fmt.Sprintf("the message is longer than %d bytes; send less at a time", maxMessage))
			})
		case len(bytes.TrimSpace(text)) > 0:
			answer = c.route(ctx, text, nil)
		}
		if answer != nil {
			go c.read(ctx, in, ended) // which nobody waits for, as a Read can't be interrupted
			defer c.work.Done()
			answer()
			return
		}
		c.work.Done()
	}
}

// begins counts one more message that is worked on, unless the connection is over.
func (c *conn) begins() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.work.Add(1)
	return true
}

// route does what a message asks for, but for what may take its time, which it gives to be done; nil is nothing.
func (c *conn) route(ctx context.Context, text []byte, in *batch) (answer func()) {
	if c.client.batches && in == nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return c.routeBatch(ctx, text)
	}
	var m message
	// What doesn't decode is answered by mcp-go, which says what is wrong with it.
	broken := json.Unmarshal(text, &m) != nil
	switch {
	case !broken && m.Method == "notifications/cancelled":
		c.cancel(m.Params.RequestID)
		return nil
	case !broken && m.Method == "" && (m.Result != nil || m.Error != nil):
		c.asks.answer(m)
		return nil
	}
	if !broken && m.Method == "notifications/initialized" {
		c.shaken()
	}
	if !broken && m.Method == "initialize" {
		c.client = introduced(m)
		c.asks.declare(c.client.can)
	}
	x := &exchange{wire: c.wire, batch: in, client: c.asks, questions: c.asks, caller: c.client}
	if !broken && m.Method != "" {
		x.id, x.token = given(m.ID), given(m.Params.Meta.Token)
		x.silent = x.id == nil
		if mcp.IsModernProtocol(m.version()) {
			x.caller, x.questions = described(m), nil
		}
	}
	if x.calls(m, runPythonName) {
		x.order, c.last = follow(c.last)
	}
	return c.answer(ctx, x, c.handler(ctx, x, m, text))
}

// given is raw, or nil where it is null or missing.
func given(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// answer gives what runs handle for x and sends what it returns, or nil where it has refused x. The request can be cancelled from here on.
func (c *conn) answer(ctx context.Context, x *exchange, handle func(context.Context) mcp.JSONRPCMessage) func() {
	select {
	case c.slots <- struct{}{}:
	default:
		c.work.Go(x.order.has)
		c.busy(ctx, x)
		return nil
	}
	ctx = x.within(ctx)
	if !c.begin(x) {
		text := fmt.Sprintf("request id %s is that of a request under way: an id is used once (MCP, base protocol); this one is not worked on", x.id)
		// Under its own id, the refusal would pass for the answer to the other one.
		x.id, handle = nil, func(context.Context) mcp.JSONRPCMessage { return rpcError(mcp.INVALID_REQUEST, text) }
	}
	return func() {
		defer func() {
			if len(x.after) > 0 {
				c.wire.written() // a client that doesn't read can't have more and more wait for that
				c.words.Go(x.answered)
			}
			<-c.slots
		}()
		defer x.cancel(nil)
		defer x.order.has()
		response := c.recovered(ctx, handle)
		if x.id != nil {
			c.mu.Lock()
			delete(c.calls, string(x.id))
			c.mu.Unlock()
		}
		// A cancelled request gets no answer.
		if response == nil || errors.Is(context.Cause(ctx), errCancelled) {
			return
		}
		x.reply(response)
	}
}

// notFound has the request whose handler has ctx answered as one for a resource that isn't there: mcp-go calls every error of a
// handler an internal one.
func notFound(ctx context.Context) {
	if x, _ := ctx.Value(exchangeKey{}).(*exchange); x != nil {
		x.code = mcp.RESOURCE_NOT_FOUND
		if mcp.IsModernProtocol(server.RequestProtocolVersion(ctx)) {
			x.code = mcp.INVALID_PARAMS
		}
	}
}

// begin notes that x is under way, unless another one of its id is.
func (c *conn) begin(x *exchange) bool {
	if x.id == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[string(x.id)] != nil {
		return false
	}
	c.calls[string(x.id)] = x
	return true
}

// busy refuses x. A notification is dropped: none but the cancels, which don't come here, has an effect.
func (c *conn) busy(ctx context.Context, x *exchange) {
	if x.silent {
		return
	}
	refusal := rpcError(codeBusy, fmt.Sprintf("%d requests are under way, which is the limit; send this one again when one of them has ended", maxRequests))
	if x.batch != nil { // it waits for the others, not for the client
		x.reply(refusal)
		return
	}
	select {
	case c.refuse <- struct{}{}:
	case <-c.wire.ended:
		return
	case <-ctx.Done():
		return
	}
	c.work.Go(func() {
		defer func() { <-c.refuse }()
		x.reply(refusal)
	})
}

// cancel ends the call with that request id; there may be none.
func (c *conn) cancel(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.calls[string(id)]; x != nil {
		x.cancel(errCancelled)
	}
}

// recovered makes a panic of a handler the answer to its own request, and of no other.
func (c *conn) recovered(ctx context.Context, handle func(context.Context) mcp.JSONRPCMessage) (m mcp.JSONRPCMessage) {
	defer func() {
		if r := recover(); r != nil {
			said, stack := fmt.Sprint(r), string(debug.Stack())
			afterwards(ctx, func() { c.teller.tell(slog.LevelError, "a request has panicked", "panic", said, "stack", stack) })
			m = rpcError(mcp.INTERNAL_ERROR, fmt.Sprintf("the bridge has failed on this request: %v", r))
		}
	}()
	return handle(ctx)
}

func rpcError(code int, text string) mcp.JSONRPCMessage {
	return mcp.JSONRPCError{JSONRPC: mcp.JSONRPC_VERSION, Error: mcp.NewJSONRPCErrorDetails(code, text, nil)}
}

// withID puts the request's id, byte for byte, into its answer.
func withID(m mcp.JSONRPCMessage, id json.RawMessage) mcp.JSONRPCMessage {
	if id == nil {
		return m
	}
	switch r := m.(type) {
	case mcp.JSONRPCResponse:
		r.ID = mcp.NewRequestId(id)
		return r
	case mcp.JSONRPCError:
		r.ID = mcp.NewRequestId(id)
		return r
	}
	return m
}
