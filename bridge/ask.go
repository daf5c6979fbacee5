package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

const (
	// askTimeout is how long a client may take for an answer: there may be a person who has to read and decide.
	askTimeout = 5 * time.Minute

	// maxAsking is how many questions of each asker one client has at a time; further ones wait their turn.
	maxAsking = 4

	// maxAsks is how many questions of each asker there may be in the course of one call.
	maxAsks = 50
)

// asker is in whose name the client is asked. Each has turns and a number of its own: servers that ask much, or are not answered, don't
// keep the user from being asked for consent.
type asker int

const (
	serverAsks asker = iota // by way of us
	policyAsks              // for consent
	askers                  // how many there are
)

// errCannotAsk says that the client can't be asked, whoever would be there to answer.
var errCannotAsk = errors.New("the client can't be asked")

// clientError is the JSON-RPC error with which a client answered.
type clientError struct {
	code    int
	message string
}

func (e *clientError) Error() string {
	return fmt.Sprintf("the client refused: %s (code %d)", e.message, e.code)
}

// abilities are what a client has declared that it answers.
type abilities struct {
	form, url, roots bool
}

// declared reads the capabilities of initialize. An elicitation that names no mode means forms (MCP 2025-11-25).
func declared(raw json.RawMessage) abilities {
	var c struct {
		Roots       json.RawMessage
		Elicitation *struct{ Form, URL json.RawMessage }
	}
	if json.Unmarshal(raw, &c) != nil {
		return abilities{}
	}
	a := abilities{roots: given(c.Roots) != nil}
	if e := c.Elicitation; e != nil {
		a.url = given(e.URL) != nil
		a.form = given(e.Form) != nil || !a.url
	}
	return a
}

// lacks names what a client would need for a request and has not declared; empty for nothing.
func (a abilities) lacks(method string, params any) string {
	switch method {
	case string(mcp.MethodListRoots):
		return unless(a.roots, "roots")
	case string(mcp.MethodElicitationCreate):
		if mode, _ := stringOf(fieldsOf(params)["mode"]); mode == mcp.ElicitationModeURL {
			return unless(a.url, "elicitation by URL")
		}
		return unless(a.form, "elicitation")
	}
	return method
}

func unless(has bool, name string) string {
	if has {
		return ""
	}
	return name
}

// fieldsOf are the members of parameters, of whatever type they are.
func fieldsOf(params any) (fields map[string]json.RawMessage) {
	if raw, err := json.Marshal(params); err == nil {
		_ = json.Unmarshal(raw, &fields)
	}
	return fields
}

// A questioner asks the client of one request. Its methods may be called concurrently.
type questioner interface {
	able() abilities

	// request returns the client's raw answer. It waits for a turn and for the answer, until ctx ends.
	request(ctx context.Context, by asker, method string, params any) (json.RawMessage, error)
}

// asks are our own requests to one client, over the protocol that has such. It is safe for concurrent use.
type asks struct {
	wire  *wire
	turns [askers]chan struct{} // one per request that the client has

	mu      sync.Mutex
	can     abilities
	last    int64
	waiting map[string]chan reply // by the id, in digits
}

// reply is what a client answered.
type reply struct {
	result json.RawMessage
	err    error
}

func newAsks(w *wire) *asks {
	a := &asks{wire: w, waiting: map[string]chan reply{}}
	for i := range a.turns {
		a.turns[i] = make(chan struct{}, maxAsking)
	}
	return a
}

// askClient has the client of the call that ctx belongs to answer a request, elicitation/create or roots/list, and
// returns its raw result. It waits for its turn, then for askTimeout at most, both off the code's clock and until ctx ends; the client
// is then told that nobody waits any more.
//
// The error is errCannotAsk, with the reason, where the client is none that answers such requests; a *clientError where it refused;
// or the cause of ctx's end. It may be called concurrently: the client has maxAsking questions of each asker at a time.
func askClient(ctx context.Context, by asker, method string, params any) (json.RawMessage, error) {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x == nil {
		return nil, fmt.Errorf("%w: the code was not run for an MCP client", errCannotAsk)
	}
	if x.modern && (x.questions == nil || method != string(mcp.MethodElicitationCreate)) {
		return nil, fmt.Errorf("%w: its version of the protocol has only elicitation, for clients that declare it, while code runs", errCannotAsk)
	}
	if lacks := x.questions.able().lacks(method, params); lacks != "" {
		return nil, fmt.Errorf("%w: it has not declared the capability %s", errCannotAsk, lacks)
	}
	if x.asked[by].Add(1) > maxAsks {
		return nil, fmt.Errorf("the client was asked %d times in the course of this call, which is the limit", maxAsks)
	}
	defer sandbox.OffClock(ctx)() // who thinks about an answer doesn't use up the code's time
	defer x.progress.waits()()
	return x.questions.request(ctx, by, method, params)
}

func (a *asks) able() abilities {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.can
}

// declare notes what the client says that it can.
func (a *asks) declare(can abilities) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.can = can
}

func (a *asks) request(ctx context.Context, by asker, method string, params any) (json.RawMessage, error) {
	select {
	case a.turns[by] <- struct{}{}:
		defer func() { <-a.turns[by] }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, fmt.Errorf("no answer came within %v to what the client was asked", askTimeout))
	defer cancel()
	id, answered := a.expect()
	defer a.forget(id)
	question := map[string]any{"jsonrpc": mcp.JSONRPC_VERSION, "id": id, "method": method}
	if params != nil {
		question["params"] = params
	}
	err := a.wire.send(ctx.Done(), question)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			a.withdraw(ctx, id)
		}
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	select {
	case r := <-answered:
		return r.result, r.err
	case <-ctx.Done():
		a.withdraw(ctx, id)
		return nil, context.Cause(ctx)
	}
}

// expect gives a request its id: a number of our own, which has nothing to do with those of the client's requests.
func (a *asks) expect() (int64, <-chan reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	c := make(chan reply, 1)
	a.waiting[strconv.FormatInt(a.last, 10)] = c
	return a.last, c
}

func (a *asks) forget(id int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, strconv.FormatInt(id, 10))
}

// withdraw tells the client that a question needs no answer any more. A client that doesn't read isn't waited for.
func (a *asks) withdraw(ctx context.Context, id int64) {
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = a.wire.send(stop.Done(), map[string]any{
		"jsonrpc": mcp.JSONRPC_VERSION, "method": string(mcp.MethodNotificationCancelled),
		"params": map[string]any{"requestId": id, "reason": "the call in whose course this was asked has ended"},
	})
}

// answer takes an answer of the client. One that nobody waits for, or that is not the first, says nothing.
func (a *asks) answer(m message) {
	id := string(m.ID)
	if s := ""; json.Unmarshal(m.ID, &s) == nil { // some clients make a text of it
		id = s
	}
	r := reply{result: m.Result}
	if given(m.Error) != nil {
		e := struct {
			Code    int
			Message string
		}{mcp.INTERNAL_ERROR, "an error that can't be read"}
		_ = json.Unmarshal(m.Error, &e)
		r = reply{err: &clientError{e.Code, text.Safe(e.Message)}}
	} else if given(m.Result) == nil {
		r.err = &clientError{mcp.INTERNAL_ERROR, "it answered with neither a result nor an error"}
	}
	a.mu.Lock()
	c := a.waiting[id]
	delete(a.waiting, id)
	a.mu.Unlock()
	if c != nil {
		c <- r // has room
	}
}
