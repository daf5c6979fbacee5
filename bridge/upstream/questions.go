package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
)

// Abilities are what a server is told that it may ask for.
type Abilities struct {
	Elicitation    bool // of forms
	ElicitationURL bool
	Roots          bool
}

// A Client is who calls are made for, and whom a server may ask something in the course of one.
// Clients are compared with ==: calls for equal ones are calls for the same. Its methods are called
// concurrently.
type Client interface {
	// Abilities are told to the servers that are started by a call for this client.
	Abilities() Abilities

	// Answer answers elicitation/create or roots/list with a raw result. Parameters are those of the
	// server, valid JSON, at most MaxQuestion bytes. It ends soon after ctx, which belongs to the call
	// during which the server asks. A *RPCError reaches the server as it is, the text of another error
	// with a code of ours.
	Answer(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)
}

const (
	// MaxQuestion bounds the parameters of a server's request, in bytes.
	MaxQuestion = 1 << 20

	// maxQuestions is how many requests of one server are answered at a time; further ones are
	// refused.
	maxQuestions = 8
)

// able returns what a server is told of the client that it is started for.
func able(ctx context.Context) Abilities {
	if c := ClientOf(ctx); c != nil {
		return c.Abilities()
	}
	return Abilities{}
}

// capabilities returns the abilities in the words of initialize.
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
	if a.Roots {
		c.Roots = &struct {
			ListChanged bool `json:"listChanged,omitempty"`
		}{}
	}
	return c
}

// askable are the methods that a server may ask a client for. A model isn't among them: code has no
// business with the user's.
var askable = []string{string(mcp.MethodElicitationCreate), string(mcp.MethodListRoots)}

// questions are what one server asks. It is safe for concurrent use, and blocks nowhere.
//
// A server doesn't say which call a request belongs to. It is taken for one of the youngest call
// under way, and refused where calls for several clients are, or for one and for none: a question
// must not reach the wrong person. A call that has been given up doesn't count.
type questions struct {
	server string

	mu    sync.Mutex
	calls map[int64]caller // under way, by age
	last  int64
}

// caller is one call under way.
type caller struct {
	ctx    context.Context
	client Client // nil for none
}

// during returns ctx for one call, during which the server may ask until over is called.
func (q *questions) during(ctx context.Context) (call context.Context, over func()) {
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

// accept returns what answers a request of the server. It also handles what can't be read.
func (s *session) accept(r *jsonrpc.Request) jsonrpc.Handler {
	var long *jsonrpc.TooLongError
	switch {
	case errors.As(r.Err, &long):
		s.fail(lineTooLongError(long.Limit))
		return nil
	case r.Err != nil:
		s.peer.noise(r.Raw)
		return nil
	}
	s.doubt.heard()
	if r.Method == string(mcp.MethodPing) {
		r.Answer(struct{}{}, nil)
		return nil
	}
	who, err := s.questions.whose(r.Method, r.Params)
	if err != nil {
		r.Answer(nil, err)
		return nil
	}
	return func(ctx context.Context) (any, error) {
		defer s.doubt.question()()
		asking, cancel := context.WithCancel(who.ctx)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return s.questions.ask(asking, who.client, r.Method, r.Params)
	}
}

// whose returns the call during which a request is taken to come.
func (q *questions) whose(method string, params json.RawMessage) (caller, error) {
	refuse := func(code int, format string, a ...any) (caller, error) {
		return caller{}, &RPCError{Code: code, Message: fmt.Sprintf(format, a...)}
	}
	switch {
	case !slices.Contains(askable, method):
		return refuse(jsonrpc.CodeMethodNotFound, "the client doesn't support %s",
			method[:min(len(method), noiseSize)])
	case len(params) > MaxQuestion:
		return refuse(jsonrpc.CodeInvalidParams, "the request is longer than %d bytes", MaxQuestion)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var youngest caller
	if len(q.calls) > 0 {
		youngest = q.calls[slices.Max(slices.Collect(maps.Keys(q.calls)))]
	}
	for _, c := range q.calls {
		if c.client != youngest.client {
			return refuse(jsonrpc.CodeBusy,
				"calls for several clients are under way, and it can't be told which of them this is for")
		}
	}
	if youngest.client == nil {
		return refuse(jsonrpc.CodeMethodNotFound,
			"the client doesn't support %s: no call for one that could answer is under way", method)
	}
	return youngest, nil
}

// ask returns a client's answer to what the server asks, during the call that ctx belongs to.
func (q *questions) ask(
	ctx context.Context, c Client, method string, params json.RawMessage,
) (json.RawMessage, error) {
	if c == nil {
		return nil, errors.New("the call is made for no client that could be asked")
	}
	result, err := c.Answer(ctx, q.server, method, orNull(params))
	switch {
	case err == nil && !json.Valid(result):
		return nil, errors.New("the client's answer is no JSON")
	case err != nil && ctx.Err() != nil:
		return nil, &RPCError{Code: jsonrpc.CodeBusy, Message: "the call during which this was asked has ended"}
	}
	return result, err
}
