package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// A Handler answers a request: with a result that can be encoded, or with an error, which is sent
// as it is where it is an *Error. Its context ends when the peer cancels the request, whose answer
// isn't sent then, or the connection is closed.
type Handler func(ctx context.Context) (result any, err error)

// A Request is one request of the peer. An id of nil is answered as null.
type Request struct {
	Message
	Turn    Turn // among those that Accept has put in order
	Refused bool // it is answered with an error of Conn's, unless Accept returns nil

	exchange
	conn   *Conn
	cancel context.CancelCauseFunc
	after  []func()
}

// Order gives the request the next Turn, unless it is refused. It is called by Accept, which
// returns a handler then. When the request is over, its turn has passed.
func (r *Request) Order() {
	if r.Refused {
		return
	}
	done := make(chan struct{})
	r.Turn = Turn{r.conn.last, sync.OnceFunc(func() { close(done) })}
	r.conn.last = done
}

// A Turn keeps requests in the order in which they came up to some point of their handlers, which
// run in any order. That of the zero value is always there.
type Turn struct {
	before <-chan struct{} // closed when all turns before have passed; nil for none
	pass   func()
}

// Wait blocks until all turns before this one have passed, or ctx has ended, whose cause it
// returns.
func (t Turn) Wait(ctx context.Context) error {
	if t.before == nil {
		return nil
	}
	select {
	case <-t.before:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Pass lets the next turn begin, once it is this one's. It may be called more than once.
func (t Turn) Pass() {
	if t.pass != nil {
		_ = t.Wait(context.Background())
		t.pass()
	}
}

// Afterwards runs do once the answer is written, in a batch that of all its requests, or the
// request is over without one. It is called by the handler, on its own goroutine.
func (r *Request) Afterwards(do func()) { r.after = append(r.after, do) }

// Carrier returns what carries the answer.
func (r *Request) Carrier() Carrier { return r.out }

// Notify sends a notification that belongs to the request.
func (r *Request) Notify(ctx context.Context, method string, params any) error {
	return notify(ctx, r.out, method, params)
}

// Call sends the peer a request that belongs to this one, as Conn.Call does.
func (r *Request) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return r.conn.call(ctx, r.out, r.conn.NewID(), method, params)
}

// Answer answers the request. It is called by Accept, which returns nil then.
func (r *Request) Answer(result any, err error) {
	encode := func() *Message { return r.encode(result, err) }
	if r.batch != nil {
		r.batch.add(encode, nil)
		return
	}
	r.post(encode())
}

// post sends an answer for the goroutine that reads.
func (x exchange) post(m *Message) {
	if !x.out.Post(m) { // reading goes on when the peer has read some of its answers
		_ = x.out.Send(x.ctx, m)
	}
}

func (r *Request) encode(result any, err error) *Message {
	m, failed := answer(r.ID, result, err)
	if failed != nil {
		m, _ = answer(r.ID, nil, failed) // a text can be encoded
	}
	return m
}

// reply sends the answer that encode returns. No more than maxEncoded are encoded at a time, so
// that a peer that doesn't read can't fill the memory with answers.
func (c *Conn) reply(out Carrier, encode func() *Message) {
	c.encoded <- struct{}{}
	defer func() { <-c.encoded }()
	_ = out.Send(context.WithoutCancel(c.ctx), encode()) // Serve tells why it can't be sent
}

// afterwards runs functions once all answers sent before are written.
func (c *Conn) afterwards(after []func()) {
	if len(after) == 0 {
		return
	}
	if l, ok := c.carrier.(*Lines); ok {
		l.Flush() // a peer that doesn't read can't have more and more wait for that
	}
	c.after.Go(func() {
		for _, do := range after {
			do()
		}
	})
}

// accept returns what handles a request, or refuses it.
func (c *Conn) accept(m *Message, x exchange) (run func()) {
	r := &Request{Message: *m, conn: c, exchange: x}
	ctx, cancel := context.WithCancelCause(c.ctx)
	r.cancel = cancel
	if x.ctx != c.ctx {
		stop := context.AfterFunc(x.ctx, func() { cancel(context.Cause(x.ctx)) })
		r.cancel = func(cause error) {
			stop()
			cancel(cause)
		}
	}
	refusal := c.enter(r)
	r.Refused = refusal != nil
	handle := c.opts.Accept(r)
	if handle != nil && refusal == nil {
		return func() { c.handle(ctx, r, handle) }
	}
	r.cancel(nil)
	switch {
	case refusal == nil:
		c.leave(r)
		<-c.slots
	case handle != nil:
		r.Answer(nil, refusal)
	}
	return nil
}

// enter notes that a request is under way and takes a slot for it, or returns why it is refused.
func (c *Conn) enter(r *Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.opts.Apart && r.ID != nil && c.serving[string(r.ID)] != nil {
		id := r.ID
		r.ID = nil // under its own, the refusal would pass for the answer to the other one
		return &Error{Code: CodeInvalidRequest, Message: fmt.Sprintf(
			"request id %s is that of a request under way: "+
				"an id is used once (MCP, base protocol); this one is not worked on", id)}
	}
	select {
	case c.slots <- struct{}{}:
	default:
		return &Error{Code: CodeBusy, Message: fmt.Sprintf(
			"%d requests are under way, which is the limit; "+
				"send this one again when one of them has ended", cap(c.slots))}
	}
	if !c.opts.Apart && r.ID != nil {
		c.serving[string(r.ID)] = r
	}
	return nil
}

func (c *Conn) leave(r *Request) {
	if r.ID == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serving[string(r.ID)] == r {
		delete(c.serving, string(r.ID))
	}
}

// cancelled ends the request that the parameters of a cancel name, if it is under way. It gets no
// answer, so that its id is free.
func (c *Conn) cancelled(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.serving[string(p.ID)]; r != nil {
		delete(c.serving, string(p.ID))
		r.cancel(ErrCancelled)
	}
}

func (c *Conn) handle(ctx context.Context, r *Request, handle Handler) {
	defer r.cancel(nil)
	result, err := r.recovered(ctx, handle)
	c.leave(r)
	var encode func() *Message // nil for no answer
	if !errors.Is(err, ErrNoAnswer) && !errors.Is(context.Cause(ctx), ErrCancelled) {
		encode = func() *Message { return r.encode(result, err) }
	}
	if r.batch != nil {
		r.batch.add(encode, r.after)
		r.Turn.Pass()
		return // the slot is kept until the batch is answered
	}
	if encode != nil {
		c.reply(r.out, encode)
	}
	r.Turn.Pass()
	c.afterwards(r.after)
	<-c.slots
}

// recovered makes a panic of a handler the answer to its own request, and to no other.
func (r *Request) recovered(ctx context.Context, handle Handler) (result any, err error) {
	defer func() {
		if value := recover(); value != nil {
			result, err = nil, r.conn.opts.Panicked(r, value, debug.Stack())
		}
	}()
	return handle(ctx)
}

// A batch collects the answers to several messages that came in one.
type batch struct {
	mu      sync.Mutex
	answers []func() *Message
	after   []func() // what is done when they are written
}

// add adds an answer, unless it is nil.
func (b *batch) add(encode func() *Message, after []func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if encode != nil {
		b.answers = append(b.answers, encode)
	}
	b.after = append(b.after, after...)
}

// encode returns all answers as one message. Those beyond maxBatchAnswer bytes are errors.
func (b *batch) encode() *Message {
	text := []byte("[")
	for i, encode := range b.answers {
		if i > 0 {
			text = append(text, ',')
		}
		m := encode()
		if len(text)+len(m.Raw) > maxBatchAnswer {
			m, _ = answer(m.ID, nil, &Error{Code: CodeBusy, Message: fmt.Sprintf(
				"the answers to this batch are longer than %d bytes, which is the limit; "+
					"send this request again by itself", maxBatchAnswer)})
		}
		text = append(text, m.Raw...)
	}
	return &Message{Raw: append(text, ']')}
}

// routeBatch routes the messages of a batch in their order. They are worked on at the same time,
// and answered together.
func (c *Conn) routeBatch(text []byte, x exchange) (run func()) {
	var messages []json.RawMessage
	err := json.Unmarshal(text, &messages)
	if err == nil && (len(messages) == 0 || len(messages) > maxBatch) {
		err = fmt.Errorf("a batch has from 1 to %d messages", maxBatch)
	}
	if err != nil {
		return c.accept(&Message{Raw: text, Err: err}, x)
	}
	in, running := &batch{}, 0
	x.batch = in
	var work sync.WaitGroup
	for _, raw := range messages {
		if run := c.route(raw, x); run != nil {
			running++
			work.Go(run)
		}
	}
	if running == 0 {
		if len(in.answers) > 0 {
			x.post(in.encode())
		}
		return nil
	}
	return func() {
		work.Wait()
		if len(in.answers) > 0 {
			c.reply(x.out, in.encode)
		}
		c.afterwards(in.after)
		for range running {
			<-c.slots
		}
	}
}
