// Package elicit asks the user of an MCP client: for consent to a tool's call, for a yes to a new
// server, for a login, and for what servers want to know. Clients of older protocols are sent
// requests; those of 2026-07-28 are asked in the results of their own calls (Parking).
//
// What others wrote is shown so that it can't pass for words of ours, and no answer but a clear yes
// counts as one. The package knows neither connections nor servers: it is handed both.
package elicit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	// Timeout is how long a person has to read, decide and answer.
	Timeout = 5 * time.Minute

	maxOpen  = 4  // questions that a client has at a time from one asker; further ones wait
	maxAsked = 50 // questions of one asker in the course of one call
)

// ErrCannotAsk means that the client can't be asked, whether or not a person uses it.
var ErrCannotAsk = errors.New("the client can't be asked")

var errUnanswered = fmt.Errorf("no answer came within %v to what the client was asked", Timeout)

// By says on whose behalf the client is asked. Each has limits of its own, so that servers that ask
// much don't keep the user from being asked for consent.
type By int

const (
	ByServer By = iota
	ByPolicy
	askers // how many there are
)

// Abilities are what a client has declared that it answers.
type Abilities struct{ Form, URL, Roots bool }

// Declared reads a client's capabilities. Elicitation without modes means forms (MCP 2025-11-25).
func Declared(capabilities json.RawMessage) Abilities {
	var c struct {
		Roots       json.RawMessage
		Elicitation *struct{ Form, URL json.RawMessage }
	}
	if json.Unmarshal(capabilities, &c) != nil {
		return Abilities{}
	}
	a := Abilities{Roots: text.Given(c.Roots) != nil}
	if e := c.Elicitation; e != nil {
		a.URL = text.Given(e.URL) != nil
		a.Form = text.Given(e.Form) != nil || !a.URL
	}
	return a
}

// check returns an error that names the capability which the client would need and hasn't declared.
func (a Abilities) check(method string, params any) error {
	has, needs := false, method
	switch method {
	case string(mcp.MethodListRoots):
		has, needs = a.Roots, "roots"
	case string(mcp.MethodElicitationCreate):
		has, needs = a.Form, "elicitation"
		var p struct{ Mode string }
		if json.Unmarshal(text.JSON(params), &p) == nil && p.Mode == mcp.ElicitationModeURL {
			has, needs = a.URL, "elicitation by URL"
		}
	}
	if !has {
		return fmt.Errorf("%w: it has not declared the capability %s", ErrCannotAsk, needs)
	}
	return nil
}

// A Channel carries questions to one client. Its methods may be called concurrently.
type Channel interface {
	Abilities() Abilities

	// Request returns the client's raw answer. It waits for a turn and the answer until ctx ends.
	Request(ctx context.Context, by By, method string, params any) (json.RawMessage, error)
}

// An Asker asks the client in the course of one call. A nil Asker is that of a run which no MCP
// client asked for. It is safe for concurrent use.
type Asker struct {
	Can     Abilities // at the beginning of the call
	Channel Channel   // nil where the client can't be asked now
	Modern  bool      // the client's protocol has only elicitation, in results

	// Wait is called before the client is asked, and what it returns once that is over.
	Wait func() (answered func())

	asked [askers]atomic.Int32
}

// Ask asks the client, by elicitation/create or roots/list, and returns its raw result. It waits
// for a turn, then for at most Timeout, and tells the client when ctx ends before the answer.
//
// The error is ErrCannotAsk with the reason, the Channel's where the client refused, or the cause
// of ctx's end.
func (a *Asker) Ask(ctx context.Context, by By, method string, params any) (json.RawMessage, error) {
	switch {
	case a == nil:
		return nil, fmt.Errorf("%w: the code was not run for an MCP client", ErrCannotAsk)
	case a.Channel == nil, a.Modern && method != string(mcp.MethodElicitationCreate):
		return nil, fmt.Errorf("%w: its version of the protocol has only elicitation, "+
			"for clients that declare it, while code runs", ErrCannotAsk)
	}
	if err := a.Channel.Abilities().check(method, params); err != nil {
		return nil, err
	}
	if a.asked[by].Add(1) > maxAsked {
		return nil, fmt.Errorf("the client was asked %d times in this call, which is the limit", maxAsked)
	}
	if a.Wait != nil {
		defer a.Wait()()
	}
	return a.Channel.Request(ctx, by, method, params)
}

// Consent asks the user to answer a form of the bridge itself.
func (a *Asker) Consent(ctx context.Context, form map[string]any) (json.RawMessage, error) {
	return a.Ask(ctx, ByPolicy, string(mcp.MethodElicitationCreate), form)
}

// OpensPages reports whether the client can show pages to the user.
func (a *Asker) OpensPages() bool {
	return a != nil && a.Channel != nil && a.Channel.Abilities().URL
}

// OpenPage asks the client to show a page to the user. It returns nil when the user agrees to that.
func (a *Asker) OpenPage(ctx context.Context, page, message string) error {
	raw, err := a.Consent(ctx, map[string]any{
		"mode": mcp.ElicitationModeURL, "url": page, "elicitationId": rand.Text(), "message": message,
	})
	if action, _ := read(raw); err == nil && action != "accept" {
		return errors.New("the user did not agree to open the page")
	}
	return err
}

// turns bounds how many questions of each asker are open.
type turns [askers]chan struct{}

func newTurns() (t turns) {
	for i := range t {
		t[i] = make(chan struct{}, maxOpen)
	}
	return t
}

// take waits for a turn until ctx ends.
func (t *turns) take(ctx context.Context, by By) (release func(), err error) {
	select {
	case t[by] <- struct{}{}:
		return func() { <-t[by] }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Client bounds the questions to one client that is sent requests. It is safe for concurrent use.
type Client struct{ turns turns }

// NewClient returns a Client.
func NewClient() *Client { return &Client{newTurns()} }

// Channel returns the Channel to the client, which has declared can. Its call sends a request and
// returns the result.
func (c *Client) Channel(can Abilities,
	call func(ctx context.Context, method string, params any) (json.RawMessage, error)) Channel {
	return channel{c, can, call}
}

type channel struct {
	*Client
	can  Abilities
	call func(ctx context.Context, method string, params any) (json.RawMessage, error)
}

// Abilities implements Channel.
func (c channel) Abilities() Abilities { return c.can }

// Request implements Channel.
func (c channel) Request(ctx context.Context, by By, method string, params any) (json.RawMessage, error) {
	release, err := c.turns.take(ctx, by)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, errUnanswered)
	defer cancel()
	return c.call(ctx, method, params)
}
