package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A Carrier takes messages to the peer. Its methods are called concurrently.
type Carrier interface {
	// Send hands over m.Raw, and blocks until it is taken or ctx ends. Where the answer to a request
	// comes in the same exchange, Send may return once Receive has been given it, or an error.
	Send(ctx context.Context, m *Message) error
	// Post hands over m.Raw without blocking, and reports whether it was taken.
	Post(m *Message) bool
}

// Options say how a Conn treats what the peer sends.
type Options struct {
	// MaxRequests is how many of the peer's requests are worked on at a time. Further ones are refused
	// with CodeBusy, so that a cancel behind them is read.
	MaxRequests int
	// Encoded holds a value for each answer that is encoded and not taken yet, which its capacity
	// bounds. Connections may share it; nil means one of its own, of two.
	Encoded chan struct{}
	// IDs is what the ids of our requests begin with. They are numbers where it is empty.
	IDs string
	// Apart says that several peers share the connection: the ids of their requests may be equal, and
	// none can cancel a request by its id. Accept and Notified are called concurrently, and requests
	// have no Order.
	Apart bool

	// Accept is called for each request, and for each message with an Err, in the order in which they
	// came. It must not block: nothing else is read meanwhile. What it returns answers the request on
	// another goroutine; after nil there is no answer but one by Request.Answer. For a request that is
	// Refused it must have no effects.
	Accept func(r *Request) Handler
	// Notified is called likewise for each notification and each answer that no call waits for.
	Notified func(m *Message)
	// Panicked returns the error that answers a request whose handler has panicked.
	Panicked func(r *Request, value any, stack []byte) error
}

// A Conn is one connection. Its methods may be called concurrently.
type Conn struct {
	carrier Carrier
	opts    Options
	ctx     context.Context // of all handlers
	cancel  context.CancelCauseFunc
	batches atomic.Bool
	slots   chan struct{}   // one for each of the peer's requests under way
	encoded chan struct{}   // one for each answer to them that is encoded and not taken yet
	last    <-chan struct{} // of the latest request in order; of the reading goroutine

	delivering sync.Mutex // held while a message is routed that Deliver was given

	work  sync.WaitGroup // one for each message that is worked on
	after sync.WaitGroup // one for each request with something to do once it is answered

	mu      sync.Mutex
	over    bool // no message is taken any more
	ids     int64
	waiting map[string]*call    // our requests, by the text of their id
	serving map[string]*Request // the peer's, by id
}

// A call is one request of ours.
type call struct {
	done   chan struct{}
	result json.RawMessage
	err    error
}

// NewConn returns a connection whose handlers' contexts end with ctx. Messages of the peer come
// from Serve, Read or Receive. Close must be called.
func NewConn(ctx context.Context, carrier Carrier, opts Options) *Conn {
	c := &Conn{
		carrier: carrier, opts: opts,
		slots:   make(chan struct{}, opts.MaxRequests),
		encoded: opts.Encoded,
		waiting: map[string]*call{}, serving: map[string]*Request{},
	}
	if c.encoded == nil {
		c.encoded = make(chan struct{}, maxEncoded)
	}
	if c.opts.Notified == nil {
		c.opts.Notified = func(*Message) {}
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// AllowBatches says whether a message may be a batch of several, as in protocol 2025-03-26.
func (c *Conn) AllowBatches(allowed bool) { c.batches.Store(allowed) }

// Context returns the context of the handlers. It ends when Close is called.
func (c *Conn) Context() context.Context { return c.ctx }

// NewID returns the id of a request that is to be made.
func (c *Conn) NewID() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids++
	if c.opts.IDs == "" {
		return strconv.AppendInt(nil, c.ids, 10)
	}
	return strconv.AppendQuote(nil, c.opts.IDs+strconv.FormatInt(c.ids, 10))
}

// Call sends a request and returns its raw result. The error is the cause of the end of ctx, after
// which the peer is told to stop, an *Error of the peer, ErrNoResult, Close's, or the carrier's.
func (c *Conn) Call(
	ctx context.Context, id json.RawMessage, method string, params any,
) (json.RawMessage, error) {
	return c.call(ctx, c.carrier, id, method, params)
}

func (c *Conn) call(
	ctx context.Context, out Carrier, id json.RawMessage, method string, params any,
) (json.RawMessage, error) {
	m, err := NewRequest(id, method, params)
	if err != nil {
		return nil, err
	}
	p := &call{done: make(chan struct{})}
	key := TextOf(id)
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return nil, context.Cause(c.ctx)
	}
	c.waiting[key] = p
	c.mu.Unlock()
	defer c.forget(key)

	// The answer may be there although sending it has failed, and with ctx's end.
	sent := out.Send(ctx, m)
	if sent == nil {
		select {
		case <-p.done:
		case <-ctx.Done():
		}
	}
	select {
	case <-p.done:
		return p.result, p.err
	default:
	}
	if ctx.Err() == nil {
		return nil, sent
	}
	withdraw(ctx, out, m)
	return nil, context.Cause(ctx)
}

// withdraw tells the peer that a request isn't waited for any more.
func withdraw(ctx context.Context, out Carrier, m *Message) {
	if m.Method == methodInitialize {
		return
	}
	n, err := NewRequest(nil, MethodCancelled, map[string]any{"requestId": m.ID, "reason": ctx.Err().Error()})
	if err == nil {
		out.Post(n) // a peer that leaves messages unread won't read this one either
	}
}

func (c *Conn) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, key)
}

// Notify sends a notification. It blocks as the carrier's Send does.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	return notify(ctx, c.carrier, method, params)
}

func notify(ctx context.Context, out Carrier, method string, params any) error {
	m, err := NewRequest(nil, method, params)
	if err != nil {
		return err
	}
	return out.Send(ctx, m)
}

// Waiting calls f if the request of ours with that id waits for its answer, which f holds up. Any
// JSON may be given as an id.
func (c *Conn) Waiting(id json.RawMessage, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[TextOf(id)] != nil {
		f()
	}
}

// Resolve ends the request of ours with that id as if the peer had answered so. It reports whether
// there was one.
func (c *Conn) Resolve(id, result json.RawMessage, err error) bool {
	key := TextOf(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.waiting[key]
	if p == nil {
		return false
	}
	delete(c.waiting, key)
	p.result, p.err = result, err
	close(p.done)
	return true
}

// resolve ends the request of ours that the peer has answered.
func (c *Conn) resolve(m *Message) bool {
	switch {
	case m.Error != nil:
		return c.Resolve(m.ID, nil, readError(m.Error))
	case m.Result == nil:
		return c.Resolve(m.ID, nil, ErrNoResult)
	}
	return c.Resolve(m.ID, m.Result, nil)
}

// Close ends all calls and the handlers' contexts, with the cause of the first end of the latter.
// It doesn't block, and does nothing when called again. Messages that still come are ignored.
func (c *Conn) Close(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	c.cancel(cause)
	for key, p := range c.waiting {
		delete(c.waiting, key)
		p.err = context.Cause(c.ctx)
		close(p.done)
	}
}

// Wait blocks until all handlers have ended, after Close.
func (c *Conn) Wait() { c.work.Wait() }

// begin counts one more message that is worked on, unless the connection is over.
func (c *Conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.work.Add(1)
	return true
}

// Receive handles one message of the peer, or a batch. Messages must be received in their order.
func (c *Conn) Receive(text []byte) {
	if !c.begin() {
		return
	}
	run := c.route(text, c.exchange())
	if run == nil {
		c.work.Done()
		return
	}
	go func() {
		defer c.work.Done()
		run()
	}()
}

// An exchange is what a message of the peer came in.
type exchange struct {
	ctx   context.Context // its end cancels the requests
	out   Carrier         // of their answers, and of what else belongs to them
	batch *batch          // nil for none
}

// exchange returns that of a message which stands alone on the connection.
func (c *Conn) exchange() exchange { return exchange{c.ctx, c.carrier, nil} }

// Deliver handles one message of the peer, or a batch, as Receive does, in the order of the calls.
// The answer, and what else belongs to its requests, goes to out, whose Post must not block. The
// end of ctx cancels the requests. Deliver doesn't wait for them: over is closed once nothing goes
// to out any more.
func (c *Conn) Deliver(ctx context.Context, text []byte, out Carrier) (over <-chan struct{}) {
	ended := make(chan struct{})
	if !c.begin() {
		close(ended)
		return ended
	}
	run := c.deliver(text, exchange{ctx, out, nil})
	if run == nil {
		c.work.Done()
		close(ended)
		return ended
	}
	go func() {
		defer close(ended)
		defer c.work.Done()
		run()
	}()
	return ended
}

// deliver routes a message that Deliver was given. Those of several peers have no order.
func (c *Conn) deliver(text []byte, x exchange) (run func()) {
	if !c.opts.Apart {
		c.delivering.Lock()
		defer c.delivering.Unlock()
	}
	return c.route(text, x)
}

// Read receives lines, on goroutines of its own, until in ends or fails, or the connection is over.
// It returns a channel that takes why: nil for the end of in or of the connection. A Read of in
// isn't interrupted.
func (c *Conn) Read(in *Reader) (ended <-chan error) {
	end := make(chan error, 1)
	go c.read(in, end)
	return end
}

// read receives lines until it has sent to ended why it doesn't go on, or has read a request: it
// runs the handler itself and leaves the reading to a new goroutine, so that no other thread has to
// be woken between the line and the handler.
func (c *Conn) read(in *Reader, ended chan<- error) {
	for {
		text, err := in.Next()
		var long *TooLongError
		switch {
		case errors.As(err, &long):
		case errors.Is(err, io.EOF):
			ended <- nil
			return
		case err != nil:
			ended <- fmt.Errorf("reading a message: %w", err)
			return
		}
		if !c.begin() {
			ended <- nil
			return
		}
		var run func()
		switch {
		case long != nil:
			run = c.broken(&Message{ID: long.ID, Err: long}, long.answer, c.exchange())
		case in.cut && !json.Valid(text): // the end of the connection says more than this
			run = c.broken(&Message{Raw: text, Err: io.ErrUnexpectedEOF}, false, c.exchange())
		default:
			run = c.route(text, c.exchange())
		}
		if run != nil {
			go c.read(in, ended)
			defer c.work.Done()
			run()
			return
		}
		c.work.Done()
	}
}

// Serve works on what comes from in and is answered through out, the carrier of c, until in ends
// (nil), the context that c was made with ends (its cause) or out fails (why). Then it closes c,
// with ErrPeerGone as the cause where there is no other, and waits for the handlers and for their
// answers to be written. It waits no longer than grace for a peer that doesn't read, nor for what
// is done after answers.
func (c *Conn) Serve(in *Reader, out *Lines, grace time.Duration) error {
	ended := c.Read(in)
	var err error
	select {
	case <-c.ctx.Done():
		err = context.Cause(c.ctx)
	case <-out.Ended(): // HangUp says why
	case err = <-ended:
	}
	c.Close(ErrPeerGone)
	worked, hung := closed(c.work.Wait), make(chan error, 1)
	go func() { hung <- out.HangUp(worked, grace) }()
	<-worked
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-closed(c.after.Wait):
	case <-late.C:
	}
	if lost := <-hung; err == nil {
		err = lost
	}
	return err
}

// closed returns a channel that is closed when wait returns.
func closed(wait func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		wait()
		close(done)
	}()
	return done
}

// route handles one message, or a batch, and returns what must run on a goroutine of its own.
func (c *Conn) route(text []byte, x exchange) (run func()) {
	text = clean(text)
	switch {
	case len(text) == 0:
		return nil
	case x.batch == nil && text[0] == '[' && c.batches.Load():
		return c.routeBatch(text, x)
	}
	m := decode(text)
	switch {
	case m.Err != nil:
		return c.broken(&m, isAnswer(text[:min(ends, len(text))]), x)
	case m.Method == "" && m.ID == nil:
		c.opts.Notified(&m)
	case m.Method == "" && c.resolve(&m):
	case m.Method == "" && m.Result == nil && m.Error == nil:
		m.Err = errNoMessage
		return c.accept(&m, x)
	case m.Method == "":
		c.opts.Notified(&m)
	case m.ID == nil:
		if m.Method == MethodCancelled {
			c.cancelled(m.Params)
		}
		c.opts.Notified(&m)
	default:
		return c.accept(&m, x)
	}
	return nil
}

// broken handles a message that can't be read. An answer ends the call that it is for.
func (c *Conn) broken(m *Message, answer bool, x exchange) (run func()) {
	id := m.ID
	if id == nil {
		id = idAt(m.Raw[:min(ends, len(m.Raw))], m.Raw[max(0, len(m.Raw)-ends):])
	}
	if answer && id != nil && c.Resolve(id, nil, fmt.Errorf("its answer can't be read: %w", m.Err)) {
		return nil
	}
	return c.accept(m, x)
}
