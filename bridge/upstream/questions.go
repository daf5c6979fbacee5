package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// Abilities are what a server is told that it may ask for.
type Abilities struct {
	Elicitation    bool // of forms
	ElicitationURL bool
	Sampling       bool
	SamplingTools  bool // a model that is given tools by who asks, beside Sampling
	Roots          bool
}

// A Client is who calls are made for, and whom a server may ask something in the course of one. Clients are compared with ==: calls
// for equal ones are calls for the same. Its methods are called concurrently.
type Client interface {
	// Abilities are told to the servers that are started by a call for this client.
	Abilities() Abilities

	// Answer answers elicitation/create, sampling/createMessage or roots/list with a raw result. Parameters are those of the server,
	// valid JSON, at most MaxQuestion bytes. It ends soon after ctx, which belongs to the call in whose course the server asks. A
	// *RPCError reaches the server as it is, the text of another error with a code of ours.
	Answer(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)
}

const (
	// MaxQuestion bounds the parameters of a server's request, in bytes.
	MaxQuestion = 1 << 20

	// maxQuestions is how many requests of one server are answered at a time; further ones are refused.
	maxQuestions = 8

	codeInvalidParams = -32602
	codeRefused       = -32000 // of JSON-RPC's range for implementations
)

type clientKey struct{}

// WithClient is ctx for a method of Pool that is called for c.
func WithClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// ClientOf is who a call with this context is made for; nil for nobody who could be asked.
func ClientOf(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(Client)
	return c
}

// able is what a server is told of the client that it is started for.
func able(ctx context.Context) Abilities {
	if c := ClientOf(ctx); c != nil {
		return c.Abilities()
	}
	return Abilities{}
}

// capabilities are abilities in the words of initialize.
func (a Abilities) capabilities() (c mcp.ClientCapabilities) {
	if a.Elicitation || a.ElicitationURL {
		c.Elicitation = &mcp.ElicitationCapability{}
		if a.Elicitation {
			c.Elicitation.Form = &struct{}{}
		}
		if a.ElicitationURL {
			c.Elicitation.URL = &struct{}{}
		}
	}
	if a.Sampling {
		c.Sampling = &mcp.SamplingCapability{}
		if a.SamplingTools {
			c.Sampling.Tools = &struct{}{}
		}
	}
	if a.Roots {
		c.Roots = &struct {
			ListChanged bool `json:"listChanged,omitempty"`
		}{}
	}
	return c
}

// errTooManyQuestions refuses one more.
var errTooManyQuestions = &RPCError{Code: codeRefused, Message: fmt.Sprintf("%d requests are under way, which is the limit", maxQuestions)}

// askable are the methods that a server may ask a client for.
var askable = []string{string(mcp.MethodElicitationCreate), string(mcp.MethodSamplingCreateMessage), string(mcp.MethodListRoots)}

// questions are what one server asks. It is safe for concurrent use; nothing but work.Wait blocks.
//
// A request doesn't say in whose course it comes. It is taken for one of the youngest call under way, and refused where there are
// calls for several clients, or for one and for nobody: a question must not reach the wrong person. What a session asks of itself is
// no call; see ownWork. Neither is one that has been given up: what a server asks for it all the same is taken for another's.
type questions struct {
	server string
	log    *slog.Logger
	reply  func(line []byte)

	mu     sync.Mutex
	closed bool
	calls  map[int64]caller // under way, by age
	last   int64
	open   map[string]context.CancelFunc // being answered, by the server's id
	work   sync.WaitGroup                // one for each of these
}

// caller is one call under way.
type caller struct {
	ctx    context.Context
	client Client // nil for nobody who could be asked
}

type ownWorkKey struct{}

// ownWork is ctx for requests that a session makes of itself, for no call: a server that asks something meanwhile asks in the course
// of another one.
func ownWork(ctx context.Context) context.Context { return context.WithValue(ctx, ownWorkKey{}, true) }

func isOwnWork(ctx context.Context) bool { return ctx.Value(ownWorkKey{}) != nil }

func newQuestions(server string, log *slog.Logger, reply func([]byte)) *questions {
	return &questions{server: server, log: log, reply: reply, calls: map[int64]caller{}, open: map[string]context.CancelFunc{}}
}

// during is ctx for one call, which may be asked in the course of until over is called.
func (q *questions) during(ctx context.Context) (call context.Context, over func()) {
	if isOwnWork(ctx) {
		return ctx, func() {}
	}
	c := ClientOf(ctx)
	ctx, cancel := context.WithCancel(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	id := q.last
	q.calls[id] = caller{ctx, c}
	return ctx, func() {
		q.mu.Lock()
		delete(q.calls, id)
		q.mu.Unlock()
		cancel()
	}
}

// asked takes a request of the server and has it answered.
func (q *questions) asked(m message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	who, err := q.whose(m)
	if err != nil {
		q.reply(refusal(m.ID, err))
		return
	}
	ctx, cancel := context.WithCancel(who.ctx)
	q.open[string(m.ID)] = cancel
	q.work.Go(func() {
		line := q.answer(ctx, who.client, m)
		q.mu.Lock()
		delete(q.open, string(m.ID))
		q.mu.Unlock()
		cancel()
		q.reply(line)
	})
}

// whose is the call in whose course a request is taken to come. It is called with mu held.
func (q *questions) whose(m message) (caller, error) {
	switch {
	case !slices.Contains(askable, m.Method), q.closed:
		return caller{}, &RPCError{Code: codeMethodNotFound, Message: "the client doesn't support " + m.Method[:min(len(m.Method), noiseSize)]}
	case len(m.Params) > MaxQuestion:
		return caller{}, &RPCError{Code: codeInvalidParams, Message: fmt.Sprintf("the request is longer than %d bytes", MaxQuestion)}
	case q.open[string(m.ID)] != nil:
		return caller{}, &RPCError{Code: codeRefused, Message: "a request of this id is under way"}
	case len(q.open) >= maxQuestions:
		return caller{}, errTooManyQuestions
	}
	var youngest caller
	if len(q.calls) > 0 {
		youngest = q.calls[slices.Max(slices.Collect(maps.Keys(q.calls)))]
	}
	for _, c := range q.calls {
		if c.client != youngest.client {
			return caller{}, &RPCError{Code: codeRefused, Message: "calls for several clients are under way, and it can't be told which of them this is for"}
		}
	}
	if youngest.client == nil {
		return caller{}, &RPCError{Code: codeMethodNotFound, Message: "the client doesn't support " + m.Method + ": no call for one that could answer is under way"}
	}
	return youngest, nil
}

// answer is the line that answers a request. A panic is the error of this request: nobody else on this goroutine would recover it.
// The server, which is a stranger, hears nothing of what it was.
func (q *questions) answer(ctx context.Context, c Client, m message) (line []byte) {
	defer func() {
		if r := recover(); r != nil {
			q.log.Error("a server's request has panicked", "server", q.server, "method", m.Method, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			line = refusal(m.ID, errors.New("the bridge has failed on this request"))
		}
	}()
	result, err := q.ask(ctx, c, m)
	if err != nil {
		return refusal(m.ID, err)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
}

func (q *questions) ask(ctx context.Context, c Client, m message) (json.RawMessage, error) {
	result, err := c.Answer(ctx, q.server, m.Method, orNull(m.Params))
	switch {
	case err == nil && !json.Valid(result):
		return nil, errors.New("the client's answer is no JSON")
	case err != nil && ctx.Err() != nil:
		return nil, &RPCError{Code: codeRefused, Message: "the call in whose course this was asked has ended"}
	}
	return result, err
}

// put has the client of the call that ctx belongs to answer what a server asks in a result. It is one of the server's requests like
// those that come by themselves, but for whose it is: that is known. It ends with ctx, and with close.
func (q *questions) put(ctx context.Context, m message) (json.RawMessage, error) {
	c := ClientOf(ctx)
	if c == nil {
		return nil, errors.New("the call is made for no client that could be asked")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q.mu.Lock()
	if q.closed || len(q.open) >= maxQuestions {
		q.mu.Unlock()
		return nil, errTooManyQuestions
	}
	q.last++
	id := "result " + strconv.FormatInt(q.last, 10) // no JSON, as the ids of its requests are
	q.open[id] = cancel
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		delete(q.open, id)
		q.mu.Unlock()
	}()
	return q.ask(ctx, c, m)
}

// refusal is the line that answers a request with an error.
func refusal(id json.RawMessage, err error) []byte {
	e := &RPCError{Code: codeInternal, Message: err.Error()}
	_ = errors.As(err, &e)
	text, _ := json.Marshal(e.Message) // a string always encodes
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`+"\n", id, e.Code, text)
}

// withdrawn ends the answering of a request that the server has cancelled, and returns which it is.
func (q *questions) withdrawn(raw []byte) (id json.RawMessage) {
	var n struct {
		Params struct {
			ID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(raw, &n) != nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if cancel := q.open[string(n.Params.ID)]; cancel != nil {
		cancel()
	}
	return n.Params.ID
}

// close ends all answering, which soon is over: see work.
func (q *questions) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, cancel := range q.open {
		cancel()
	}
}
