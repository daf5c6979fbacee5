package elicit

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// gather is how long a question waits for others, to be asked with them.
const gather = 20 * time.Millisecond

var errUnknownState = fmt.Errorf("requestState was not issued by this server to this client for this call, "+
	"was used before, or the call has ended, perhaps because %w: "+
	"send the call without requestState to run the code again", errUnanswered)

// Parking holds the calls of one client that wait for answers (MCP 2026-07-28, multi round-trip
// requests). A call is found by the random state that its questions came with. A state serves once,
// and only for a call with the same arguments. Parking is safe for concurrent use.
type Parking struct {
	self mcp.Implementation
	most int    // calls
	mark string // that states end in
	log  *slog.Logger

	mu     sync.Mutex // also of its dialogues
	closed bool
	calls  map[string]*Dialogue // by state
}

// NewParking returns the Parking of a client that is told who it talks to, for most calls at a
// time. Their states end in mark.
func NewParking(self mcp.Implementation, most int, mark string, log *slog.Logger) *Parking {
	return &Parking{self: self, most: most, mark: mark, log: log, calls: map[string]*Dialogue{}}
}

// InputRequired is the result of a call that is parked.
type InputRequired struct {
	Type     mcp.ResultType          `json:"resultType"`
	Requests map[string]inputRequest `json:"inputRequests"`
	State    string                  `json:"requestState"`
	Meta     map[string]any          `json:"_meta"`
}

type inputRequest struct {
	Method string `json:"method"`
	Params any    `json:"params,omitempty"`
}

// Attempt is what a request says of a call that may have come before.
type Attempt struct {
	Again   bool // it continues a parked call
	state   string
	digest  [sha256.Size]byte // of the tool's name and arguments
	answers map[string]json.RawMessage
}

// ReadAttempt reads a request. Calls are compared by what their arguments are, not how they are
// written.
func ReadAttempt(request []byte) (a Attempt, err error) {
	var call struct {
		Params struct {
			Name      any                        `json:"name"`
			Arguments any                        `json:"arguments"`
			State     *string                    `json:"requestState"`
			Answers   map[string]json.RawMessage `json:"inputResponses"`
		} `json:"params"`
	}
	decoder := json.NewDecoder(bytes.NewReader(request))
	decoder.UseNumber()
	if err := decoder.Decode(&call); err != nil {
		return a, errors.New("requestState must be a string and inputResponses an object")
	}
	a.digest = sha256.Sum256(text.JSON([]any{call.Params.Name, call.Params.Arguments}))
	a.answers = call.Params.Answers
	if call.Params.State != nil {
		a.Again, a.state = true, *call.Params.State
	}
	return a, nil
}

// Dialogue is one call whose client is asked in the call's own results. It goes on over several
// requests: one attends it at a time and is answered with the call's result or with questions. It
// is a Channel, and safe for concurrent use.
type Dialogue struct {
	Run     Run
	parking *Parking
	digest  [sha256.Size]byte
	turns   turns
	asked   chan struct{}      // holds one value when there are questions
	done    chan struct{}      // closed when the call has ended
	answer  mcp.JSONRPCMessage // set before done is closed

	// What follows is guarded by parking.mu.
	can   Abilities // of the latest request
	open  map[string]*question
	last  int         // number of questions so far
	state string      // that it is parked under; empty while a request attends it
	limit *time.Timer // ends the parked call
}

type question struct {
	method string
	params any
	reply  chan reply // has room for one
}

type reply struct {
	result json.RawMessage
	err    error
}

// Run is the call of a dialogue.
type Run interface {
	// Cancel has the call end soon, which Finish tells.
	Cancel(why error)
}

// Begin returns the Dialogue of a call's first attempt.
func (p *Parking) Begin(a Attempt, can Abilities, run Run) *Dialogue {
	return &Dialogue{
		Run: run, parking: p, digest: a.digest, can: can, turns: newTurns(),
		open: map[string]*question{}, asked: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// Resume gives a parked call the answers of an attempt whose client has the abilities can. The
// caller attends the call from then on.
func (p *Parking) Resume(a Attempt, can Abilities) (*Dialogue, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.calls[a.state]
	if d == nil || d.digest != a.digest {
		return nil, errUnknownState
	}
	d.unpark()
	d.can = can
	for key, q := range d.open {
		if raw := text.Given(a.answers[key]); raw != nil {
			q.reply <- reply{result: raw}
			delete(d.open, key)
		}
	}
	if len(d.open) > 0 {
		d.notify()
	}
	return d, nil
}

// Close ends the parked calls and parks no more.
func (p *Parking) Close(why error) {
	p.mu.Lock()
	p.closed = true
	parked := slices.Collect(maps.Values(p.calls))
	for _, d := range parked {
		d.unpark()
	}
	p.mu.Unlock()
	for _, d := range parked {
		d.abandon(why)
	}
}

// Attend waits until there is something to answer a request with: questions, with which the call is
// parked, or the call's result. The end of ctx ends the call.
func (d *Dialogue) Attend(ctx context.Context) (*InputRequired, mcp.JSONRPCMessage) {
	for {
		select {
		case <-d.asked:
		case <-d.done:
		case <-ctx.Done():
		}
		others := time.NewTimer(gather)
		select {
		case <-others.C:
		case <-d.done:
			others.Stop()
			return nil, d.answer
		case <-ctx.Done():
			others.Stop()
			d.Run.Cancel(context.Cause(ctx))
			<-d.done
			return nil, d.answer
		}
		if questions := d.park(); questions != nil {
			return questions, nil
		}
	}
}

// Finish notes how the call ended.
func (d *Dialogue) Finish(answer mcp.JSONRPCMessage) {
	d.answer = answer
	close(d.done)
}

// Abilities implements Channel.
func (d *Dialogue) Abilities() Abilities {
	d.parking.mu.Lock()
	defer d.parking.mu.Unlock()
	return d.can
}

// Request implements Channel. A parked call bounds its time.
func (d *Dialogue) Request(ctx context.Context, by By, method string, params any) (json.RawMessage, error) {
	release, err := d.turns.take(ctx, by)
	if err != nil {
		return nil, err
	}
	defer release()
	q := &question{method, params, make(chan reply, 1)}
	d.parking.mu.Lock()
	d.last++
	key := "q" + strconv.Itoa(d.last)
	d.open[key] = q
	d.parking.mu.Unlock()
	d.notify()
	defer func() {
		d.parking.mu.Lock()
		defer d.parking.mu.Unlock()
		delete(d.open, key)
	}()
	select {
	case r := <-q.reply:
		return r.result, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *Dialogue) notify() {
	select {
	case d.asked <- struct{}{}:
	default: // the value that is there does
	}
}

// park returns the open questions and parks the call, or returns nil where there are none any more.
func (d *Dialogue) park() *InputRequired {
	p := d.parking
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := map[string]inputRequest{}
	for key, q := range d.open {
		err := d.can.check(q.method, q.params)
		if err == nil && (p.closed || len(p.calls) >= p.most) {
			err = fmt.Errorf("%w: %d of its calls wait for answers, which is the limit", ErrCannotAsk, p.most)
		}
		if err != nil {
			q.reply <- reply{err: err}
			delete(d.open, key)
			continue
		}
		asked[key] = inputRequest{q.method, q.params}
	}
	if len(asked) == 0 {
		return nil
	}
	state := rand.Text() + p.mark
	d.state, p.calls[state] = state, d
	d.limit = time.AfterFunc(Timeout, func() {
		p.mu.Lock()
		late := d.state == state
		if late {
			d.unpark()
		}
		p.mu.Unlock()
		if late {
			d.abandon(errUnanswered)
		}
	})
	return &InputRequired{Type: mcp.ResultTypeInputRequired, Requests: asked, State: state,
		Meta: map[string]any{mcp.MetaKeyServerInfo: p.self}}
}

// unpark takes the call from those that wait. It is called with parking.mu held.
func (d *Dialogue) unpark() {
	d.limit.Stop()
	delete(d.parking.calls, d.state)
	d.state = ""
}

// abandon ends a call that was parked and that no request will attend any more.
func (d *Dialogue) abandon(why error) {
	d.parking.log.Info("a parked call was ended", "reason", why)
	d.Run.Cancel(why)
}
