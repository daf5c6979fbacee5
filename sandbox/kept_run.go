package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// LongestCall returns how long a call of a Kept may take, from the moment that it has its turn.
func (c Config) LongestCall() time.Duration {
	return c.QueueTimeout + prepareMax + c.StartTimeout + c.MaxTimeout + c.patience() + keptGrace + cancelMax
}

// Run runs code where the last call left off. It waits for the calls before it, and for a place
// among all runs. The Request's Environment and Principal are ignored. Errors are those of
// Sandbox.Run; an *EndedError means that nothing was run and that nothing will be.
func (k *Kept) Run(ctx context.Context, r Request, h Host) (Result, error) {
	begin := time.Now()
	s := k.sandbox
	r.Environment, r.Principal = k.req.Environment, k.req.Principal
	if err := s.check(&r); err != nil {
		return Result{}, err
	}
	if err := k.enter(ctx); err != nil {
		r.Queued()
		if ctx.Err() == nil {
			return Result{}, err
		}
		res := notBegun(r.ID)
		res.Kept = &KeptState{State: StateKept}
		return res, nil
	}
	defer k.leave()
	if r.File == "" {
		r.File = fmt.Sprintf("<call %d>", k.calls+1)
	}
	n := newSession(s, r, h)
	n.kept, n.machine = k, k.guest.machine
	n.ticket.own = true
	res, err := k.admitted(ctx, n, func() (Result, error) { return k.run(ctx, n) })
	res.Took.Queued, res.Took.Prepared, res.Took.Total = n.queued, n.preparing, time.Since(begin)
	if err != nil {
		return Result{Took: res.Took}, err
	}
	if res.Kept == nil { // it was cancelled before it began
		res.Kept = &KeptState{State: StateKept, Calls: k.calls}
	}
	s.log.Debug("run in a sandbox", "run", r.ID, "status", res.Status, "ran", res.Took.Run, "took",
		res.Took.Total)
	return res, nil
}

// enter waits for the calls before, until ctx or the guest has ended.
func (k *Kept) enter(ctx context.Context) error {
	if why, ok := k.Ended(); ok {
		return &EndedError{why}
	}
	return k.take(ctx, k.turn)
}

func (k *Kept) leave() { <-k.turn }

// take fills turn or link, unless ctx or the guest has ended.
func (k *Kept) take(ctx context.Context, what chan struct{}) error {
	select {
	case what <- struct{}{}:
	case <-k.life.Done():
		return context.Cause(k.life)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if k.life.Err() != nil {
		<-what
		return context.Cause(k.life)
	}
	return nil
}

// admitted calls do once the call is admitted. The guest may end while it waits for that.
func (k *Kept) admitted(ctx context.Context, n *session, do func() (Result, error)) (Result, error) {
	wait, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(k.life, func() { cancel(context.Cause(k.life)) })
	defer stop()
	began := false
	res, err := n.admitted(wait, func() (Result, error) {
		began = true
		return do()
	})
	if !began && ctx.Err() == nil && k.life.Err() != nil {
		return Result{}, context.Cause(k.life)
	}
	return res, err
}

// run plays the host's part of one call.
func (k *Kept) run(caller context.Context, n *session) (Result, error) {
	n.begin = time.Now()
	order, err := n.order()
	if err != nil {
		return Result{}, err
	}
	if n.req.Files != nil {
		if n.inputs, err = n.req.Files(); err != nil {
			return Result{}, err
		}
		// A part of one that can't be read would stay for the next call.
		if n.inputs, err = held(n.inputs); err != nil {
			return Result{}, err
		}
	}
	return k.talk(caller, n, order)
}

// talk sends an order, and plays the host's part until the guest has said done, or has ended.
func (k *Kept) talk(caller context.Context, n *session, order []byte) (Result, error) {
	if err := k.take(caller, k.link); err != nil {
		if caller.Err() != nil {
			return notBegun(n.req.ID), nil
		}
		return Result{}, err
	}
	unlink := sync.OnceFunc(func() { <-k.link })
	defer unlink()
	g := k.guest
	n.stdin, n.calls.stdin = g.stdin, g.stdin
	n.cancel = func(cause error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.over { // the guest is another call's then
			g.cut(cause)
		}
	}
	n.abandon = func(error) {} // start sees to it; until then sendFiles takes StartTimeout at most
	ctx, over := context.WithCancelCause(context.WithoutCancel(caller))
	defer over(errOver)
	stopped := context.AfterFunc(caller, func() { n.stop(byCaller) })
	defer stopped()
	n.unfiltered, n.note = !g.hello.Seccomp, n.short(g.hello.Note)
	defer n.files.release()
	if caller.Err() != nil || !k.begin(ctx, n, order) {
		n.stopClock()
		return notBegun(n.req.ID), nil
	}
	n.readFrames(ctx, g.frames)
	n.ended = time.Now()
	n.stopClock()
	var e ending
	switch {
	case n.done == nil, lost(n.done) && !n.told(): // the engine may know more
		g.end()
		e = ending{context.Cause(g.life), g.exit, g.err}
	default:
		unlink() // tool calls may take long to end, and the guest has to be pinged meanwhile
	}
	if n.done != nil && wait(n.done).Exited && n.req.Environment != nil {
		k.sandbox.pool.learn(n.req.Environment, n.done.Imported)
	}
	over(errOver)
	n.wg.Wait()
	res, err := n.conclude(e, g.stderr.String())
	if err != nil {
		return res, err
	}
	if why, ok := k.Ended(); ok && n.done == nil {
		res.Status, res.ExitCode, res.Signal = StatusCancelled, -1, 0
		res.Message = "The sandbox was ended while the code ran: " + why + "."
	}
	res.Kept = k.state(n, res)
	if res.Kept.State == StateLost {
		k.end(res.Kept.Reason)
	}
	return res, nil
}

// begin sends the files and the order, and reports whether it did: a call that was cancelled before
// isn't begun.
func (k *Kept) begin(ctx context.Context, n *session, order []byte) bool {
	if n.isStopped() {
		return false
	}
	if err := n.sendFiles(k.guest); err != nil { // they are held, so it isn't the reading
		n.unsentFrame(err)
	}
	if !n.start(ctx, time.Time{}, order) {
		return false
	}
	if n.data == nil { // it is a run
		k.calls++
		if n.req.Began != nil {
			n.req.Began(true)
		}
	}
	return true
}

// lost reports whether the guest says that it is about to end.
func lost(done *entrypoint.FromGuest) bool {
	return done.Sandbox == nil || done.Sandbox.State == entrypoint.SandboxLost
}

// state returns what the call has left.
func (k *Kept) state(n *session, r Result) *KeptState {
	if n.done == nil || n.done.Sandbox == nil {
		return &KeptState{State: StateLost, Reason: asReason(r.Message), Calls: k.calls}
	}
	told := n.done.Sandbox
	state := &KeptState{Note: n.crowded(n.short(told.Reason)), NoWayBack: n.crowded(n.short(told.NoWayBack)),
		Calls: k.calls}
	switch told.State {
	case entrypoint.SandboxKept:
		state.State = StateKept
	case entrypoint.SandboxBefore:
		state.State, state.Reason = StateBefore, r.Message
	default:
		state.State, state.Reason, state.Note = StateLost, cmp.Or(state.Note, asReason(r.Message)), ""
	}
	return state
}

// asReason returns a sentence in the form of a reason, which stands within others.
func asReason(sentence string) string {
	s := strings.TrimSuffix(sentence, ".")
	if strings.HasPrefix(s, "The ") {
		s = "t" + s[1:]
	}
	return s
}
