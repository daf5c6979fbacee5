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
	Turn Turn // among those that Accept has put in order

	conn   *Conn
	batch  *batch // that it came in; nil for none
	cancel context.CancelCauseFunc
	after  []func()
}

// Order gives the request the next Turn. It is called by Accept, which returns a handler then. When
// the request is over, its turn has passed.
func (r *Request) Order() {
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

// Afterwards runs do once the answer is written, or the request is over without one. It is called
// by the handler, on its own goroutine.
func (r *Request) Afterwards(do func()) { r.after = append(r.after, do) }

// Answer answers the request. It is called by Accept, which returns nil then.
func (r *Request) Answer(result any, err error) {
	m := r.encode(result, err)
	switch {
	case r.batch != nil:
		r.batch.add(m)
	case !r.conn.carrier.Post(m): // reading goes on when the peer has read some of its answers
		_ = r.conn.carrier.Send(r.conn.ctx, m)
	}
}

func (r *Request) encode(result any, err error) *Message {
	m, failed := answer(r.ID, result, err)
	if failed != nil {
		m, _ = answer(r.ID, nil, failed) // a text can be encoded
	}
	return m
}

// accept returns what handles a request, or refuses it.
func (c *Conn) accept(m *Message, in *batch) (run func()) {
	r := &Request{Message: *m, conn: c, batch: in}
	handle := c.opts.Accept(r)
	if handle == nil {
		return nil
	}
	select {
	case c.slots <- struct{}{}:
	default:
		c.work.Go(r.Turn.Pass)
		r.Answer(nil, &Error{Code: CodeBusy, Message: fmt.Sprintf(
			"%d requests are under way, which is the limit; "+
				"send this one again when one of them has ended", cap(c.slots))})
		return nil
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	r.cancel = cancel
	if !c.enter(r) {
		refusal := &Error{Code: CodeInvalidRequest, Message: fmt.Sprintf(
			"request id %s is that of a request under way: "+
				"an id is used once (MCP, base protocol); this one is not worked on", r.ID)}
		// Under its own id, the refusal would pass for the answer to the other one.
		r.ID, handle = nil, func(context.Context) (any, error) { return nil, refusal }
	}
	return func() { c.handle(ctx, r, handle) }
}

// enter notes that a request is under way, unless another one of its id is.
func (c *Conn) enter(r *Request) bool {
	if r.ID == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serving[string(r.ID)] != nil {
		return false
	}
	c.serving[string(r.ID)] = r
	return true
}

func (c *Conn) leave(r *Request) {
	if r.ID == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.serving, string(r.ID))
}

// cancelled ends the request that the parameters of a cancel name, if it is under way.
func (c *Conn) cancelled(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.serving[string(p.ID)]; r != nil {
		r.cancel(ErrCancelled)
	}
}

func (c *Conn) handle(ctx context.Context, r *Request, handle Handler) {
	defer func() {
		if len(r.after) > 0 {
			if l, ok := c.carrier.(*Lines); ok {
				l.Flush() // a peer that doesn't read can't have more and more wait for that
			}
			c.after.Go(func() {
				for _, do := range r.after {
					do()
				}
			})
		}
		<-c.slots
	}()
	defer r.cancel(nil)
	defer r.Turn.Pass()
	result, err := c.recovered(ctx, r, handle)
	c.leave(r)
	if errors.Is(err, ErrNoAnswer) || errors.Is(context.Cause(ctx), ErrCancelled) {
		return
	}
	m := r.encode(result, err)
	if r.batch != nil {
		r.batch.add(m)
		return
	}
	_ = c.carrier.Send(context.WithoutCancel(c.ctx), m) // Serve tells why it can't be sent
}

// recovered makes a panic of a handler the answer to its own request, and to no other.
func (c *Conn) recovered(ctx context.Context, r *Request, handle Handler) (result any, err error) {
	defer func() {
		if value := recover(); value != nil {
			result, err = nil, c.opts.Panicked(r, value, debug.Stack())
		}
	}()
	return handle(ctx)
}

// A batch collects the answers to several messages that came in one.
type batch struct {
	mu      sync.Mutex
	answers []json.RawMessage
}

func (b *batch) add(m *Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = append(b.answers, m.Raw)
}

// routeBatch routes the messages of a batch in their order. They are worked on at the same time,
// and answered together.
func (c *Conn) routeBatch(text []byte) (run func()) {
	var messages []json.RawMessage
	err := json.Unmarshal(text, &messages)
	if err == nil && (len(messages) == 0 || len(messages) > maxBatch) {
		err = fmt.Errorf("a batch has from 1 to %d messages", maxBatch)
	}
	if err != nil {
		return c.accept(&Message{Raw: text, Err: err}, nil)
	}
	in := &batch{}
	var work sync.WaitGroup
	for _, raw := range messages {
		if run := c.route(raw, in); run != nil {
			work.Go(run)
		}
	}
	return func() {
		work.Wait()
		if len(in.answers) == 0 {
			return
		}
		if all, err := json.Marshal(in.answers); err == nil {
			_ = c.carrier.Send(context.WithoutCancel(c.ctx), &Message{Raw: all})
		}
	}
}
