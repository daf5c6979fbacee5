package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// askGather is how long a question waits for others of the same call, so that the client is asked them together.
const askGather = 20 * time.Millisecond

var errUnanswered = fmt.Errorf("no answer came within %v to what the client was asked", askTimeout)

// dialogue is one call whose client is asked in the call's own results (MCP 2026-07-28, multi round-trip requests). The code
// goes on over several requests: one attends it at a time, and is answered with the call's result or with questions. Then the
// call is parked until it comes again with the answers. It is safe for concurrent use.
type dialogue struct {
	parking *parking
	id      string
	digest  []byte                // of what was called with which arguments
	run     *exchange             // the request that the code knows of
	turns   [askers]chan struct{} // one per question of each asker
	asked   chan struct{}         // there are questions
	done    chan struct{}         // closed when the call is over
	answer  mcp.JSONRPCMessage    // read after done

	mu        sync.Mutex
	can       abilities // of the latest request
	open      map[string]*openQuestion
	last      int         // number of questions so far
	turn      int         // number of times that it was parked
	limit     *time.Timer // ends the parked call; nil while a request attends it
	abandoned bool        // no request will attend it any more
}

type openQuestion struct {
	method string
	params any
	reply  chan reply // has room for one
}

// converse answers a call of run_python whose client can be asked in results, the first time and each
// time it comes again. The code runs under base; ctx is the request's.
func (c *conn) converse(base, ctx context.Context, x *exchange, m message, text []byte) mcp.JSONRPCMessage {
	again, err := readAgain(text)
	if err != nil {
		return rpcError(mcp.INVALID_PARAMS, err.Error())
	}
	if given(m.Params.State) != nil {
		x.order.has() // calls behind it don't wait until this one is over
		d, err := c.parked.resume(x, again)
		if err != nil {
			return rpcError(mcp.INVALID_PARAMS, err.Error())
		}
		d.run.progress.reportTo(x)
		return d.attend(ctx, x)
	}
	d := c.parked.newDialogue(x, again.digest)
	base = d.run.within(base)
	c.work.Go(func() {
		defer d.run.cancel(nil)
		d.conclude(c.recovered(base, func(ctx context.Context) mcp.JSONRPCMessage { return c.server.HandleMessage(ctx, text) }))
	})
	return d.attend(ctx, x)
}

func (p *parking) newDialogue(x *exchange, digest []byte) *dialogue {
	d := &dialogue{
		parking: p, id: newID(), digest: digest, can: x.can, open: map[string]*openQuestion{},
		asked: make(chan struct{}, 1), done: make(chan struct{}),
	}
	for i := range d.turns {
		d.turns[i] = make(chan struct{}, maxAsking)
	}
	d.run = &exchange{caller: x.caller, token: x.token, wire: x.wire, client: x.client, questions: d, order: x.order}
	return d
}

// attend waits until there is something to answer x with: the call's result, or questions. The end of ctx is the client's
// cancel, which ends the call.
func (d *dialogue) attend(ctx context.Context, x *exchange) mcp.JSONRPCMessage {
	for {
		select {
		case <-d.asked:
		case <-d.done:
		case <-ctx.Done():
		}
		gather := time.NewTimer(askGather)
		select {
		case <-gather.C:
		case <-d.done:
			gather.Stop()
			x.after = append(x.after, d.run.after...)
			return d.answer
		case <-ctx.Done():
			gather.Stop()
			d.run.cancel(context.Cause(ctx))
			<-d.done
			x.after = append(x.after, d.run.after...)
			return d.answer
		}
		if questions := d.park(x); questions != nil {
			d.run.progress.reportTo(nil)
			return mcp.NewJSONRPCResultResponse(mcp.RequestId{}, questions)
		}
	}
}

// conclude notes how the call has ended. Its answer waits for the request that attends it, if one will.
func (d *dialogue) conclude(answer mcp.JSONRPCMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = answer
	close(d.done)
	if d.abandoned {
		d.run.answered()
	}
}

// able implements questioner.
func (d *dialogue) able() abilities {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.can
}

// request implements questioner. Its time is bounded by that of a parked call.
func (d *dialogue) request(ctx context.Context, by asker, method string, params any) (json.RawMessage, error) {
	select {
	case d.turns[by] <- struct{}{}:
		defer func() { <-d.turns[by] }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	q := &openQuestion{method, params, make(chan reply, 1)}
	d.mu.Lock()
	d.last++
	key := "q" + strconv.Itoa(d.last)
	d.open[key] = q
	d.mu.Unlock()
	d.notify()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, key)
	}()
	select {
	case r := <-q.reply:
		return r.result, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *dialogue) notify() {
	select {
	case d.asked <- struct{}{}:
	default: // it will be seen anyway
	}
}

// park returns the questions that x is answered with, or nil when there are none any more. The call waits for askTimeout then.
func (d *dialogue) park(x *exchange) *inputRequired {
	d.mu.Lock()
	defer d.mu.Unlock()
	room := d.parking.admits(d)
	asked := map[string]inputRequest{}
	for key, q := range d.open {
		switch lacks := d.can.lacks(q.method, q.params); {
		case lacks != "":
			q.reply <- reply{err: fmt.Errorf("%w: it has not declared the capability %s", errCannotAsk, lacks)}
		case !room:
			q.reply <- reply{err: fmt.Errorf("%w: %d of its calls wait for answers, which is the limit", errCannotAsk, maxParked)}
		default:
			asked[key] = inputRequest{q.method, q.params}
			continue
		}
		delete(d.open, key)
	}
	if len(asked) == 0 {
		d.parking.forget(d)
		return nil
	}
	d.turn++
	turn := d.turn
	d.limit = time.AfterFunc(askTimeout, func() { d.expire(turn) })
	return &inputRequired{
		Type: mcp.ResultTypeInputRequired, Requests: asked, State: d.parking.state(d, time.Now().Add(askTimeout)),
		Meta: map[string]any{mcp.MetaKeyServerInfo: d.parking.self},
	}
}

// expire ends the call when it has not come again since it was parked for the given time.
func (d *dialogue) expire(turn int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turn != turn || d.limit == nil {
		return
	}
	d.abandon(errUnanswered)
}

// abandon ends the call, which no request will attend any more. It is called with mu held.
func (d *dialogue) abandon(why error) {
	d.limit.Stop()
	d.limit, d.abandoned = nil, true
	d.parking.forget(d)
	d.parking.log.Info("a parked call was ended", "reason", why)
	select {
	case <-d.done: // it was over, and waited to be fetched
		d.run.answered()
	default:
		d.run.cancel(why)
	}
}

// resume takes the answers of x, and goes on with the call. It returns false when the call isn't parked with this turn.
func (d *dialogue) resume(x *exchange, turn int, answers map[string]json.RawMessage) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.limit == nil || d.turn != turn {
		return false
	}
	d.limit.Stop()
	d.limit, d.can = nil, x.can
	for key, q := range d.open {
		if raw := given(answers[key]); raw != nil {
			q.reply <- reply{result: raw}
			delete(d.open, key)
		}
	}
	if len(d.open) > 0 {
		d.notify()
	}
	return true
}
