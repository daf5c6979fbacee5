package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// Run runs code where the last call left off. It waits for the calls before it, and for a place
// among all runs. The Request's Environment is ignored. Errors are those of Sandbox.Run; an
// *EndedError means that nothing was run and that nothing will be.
func (k *Kept) Run(ctx context.Context, r Request, h Host) (Result, error) {
	begin := time.Now()
	s := k.sandbox
	r.Environment = k.req.Environment
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
	res, err := n.admitted(ctx, func() (Result, error) { return k.run(ctx, n) })
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
	select {
	case k.turn <- struct{}{}:
	case <-k.ended:
		return &EndedError{k.why}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if why, ok := k.Ended(); ok {
		k.leave()
		return &EndedError{why}
	}
	return nil
}

func (k *Kept) leave() { <-k.turn }

// run plays the host's part of one call.
func (k *Kept) run(caller context.Context, n *session) (Result, error) {
	g := k.guest
	n.begin = time.Now()
	order, err := n.order()
	if err != nil {
		return Result{}, err
	}
	if n.req.Files != nil {
		if n.inputs, err = n.req.Files(); err != nil {
			return Result{}, err
		}
		if size := inputBytes(n.inputs); size > MaxInputs {
			return Result{}, fmt.Errorf("the files are %d bytes long; at most %d can be copied", size, MaxInputs)
		}
	}
	return k.talk(caller, n, func(ctx context.Context) error {
		if err := n.sendFiles(g); err != nil {
			return err
		}
		if n.req.Began != nil {
			n.req.Began(true)
		}
		k.calls++
		n.start(ctx, time.Time{}, order)
		return nil
	})
}

// talk sends what begin does, and plays the host's part until the guest has said done, or has
// ended.
func (k *Kept) talk(caller context.Context, n *session, begin func(context.Context) error) (Result, error) {
	g := k.guest
	n.stdin, n.calls.stdin = g.stdin, g.stdin
	n.cancel = func(cause error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !n.over { // the guest is another call's then
			g.cut(cause)
		}
	}
	n.abandon = func(error) { // the code isn't sent any more, or killed as soon as it is
		n.unsentFrame(g.stdin.Write(entrypoint.Cancel{Type: entrypoint.TypeCancel, ID: n.req.ID}))
	}
	ctx, over := context.WithCancelCause(context.WithoutCancel(caller))
	defer over(errOver)
	stopped := context.AfterFunc(caller, n.cancelled)
	defer stopped()
	n.unfiltered, n.note = !g.hello.Seccomp, n.short(g.hello.Note)
	defer n.files.release()
	if err := begin(ctx); err != nil {
		n.mu.Lock()
		n.over = true
		n.mu.Unlock()
		return Result{}, err
	}
	n.readFrames(ctx, g.frames)
	n.ended = time.Now()
	n.stopClock()
	var e ending
	if n.done == nil {
		g.end()
		e = ending{context.Cause(g.life), g.exit, g.err}
	} else if wait(n.done).Exited && n.req.Environment != nil {
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

// state returns what the call has left.
func (k *Kept) state(n *session, r Result) *KeptState {
	if n.done == nil || n.done.Sandbox == nil {
		return &KeptState{State: StateLost, Reason: r.Message, Calls: k.calls}
	}
	told := n.done.Sandbox
	state := &KeptState{Reason: n.short(told.Reason), NoWayBack: n.short(told.NoWayBack), Calls: k.calls}
	switch told.State {
	case entrypoint.SandboxKept:
		state.State = StateKept
	case entrypoint.SandboxBefore:
		state.State = StateBefore
		if state.Reason == "" {
			state.Reason = r.Message
		}
	default:
		state.State = StateLost
	}
	return state
}
