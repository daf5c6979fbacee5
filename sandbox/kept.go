package sandbox

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Bounds of a guest that lasts which need no tuning.
const (
	keptGrace = 12 * time.Second // from cancel to done: another process may have to take over
	keptPong  = 10 * time.Second // for its answer to a ping between calls: what it has can't be replaced
)

// KeepRequest describes a guest that is to last.
type KeepRequest struct {
	Principal   string            // as in Request; of all calls of the guest
	Environment *Environment      // as in Request; it is that of all calls of the guest
	MaxAge      time.Duration     // after which the engine itself ends the container; must be positive
	Variables   map[string]string // of the environment of the code and of commands, beside the usual ones
	Calls       int               // runs that are counted already

	// Running lets processes run on between calls. Otherwise all are stopped when a call has ended.
	Running bool

	Queued   func()           // as in Request
	Progress runtime.Progress // as in Request
}

// State is what became of a kept guest's variables in a call.
type State string

// The states of a kept guest.
const (
	StateKept   State = entrypoint.SandboxKept   // as the call left them
	StateBefore State = entrypoint.SandboxBefore // as before the call
	StateLost   State = entrypoint.SandboxLost   // the guest has ended, or is about to
)

// KeptState says what a call has left in a kept guest.
type KeptState struct {
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // of StateBefore and StateLost: what the call did, or what failed

	// Note says what else has happened to the variables, such as that a copy of an earlier state has
	// taken over. It is for a person, of StateKept and StateBefore, and mostly empty.
	Note string `json:"note,omitempty"`

	// NoWayBack says why the next bad call would lose the variables: they are too large, or a
	// library doesn't survive a fork. It is empty when a bad call can be undone.
	NoWayBack string `json:"noWayBack,omitempty"`

	Calls int `json:"call"` // runs so far, this one included
}

// Kept is a guest that runs one piece of code after the other, in order of arrival, in one
// interpreter. It is safe for concurrent use. Close must be called.
type Kept struct {
	sandbox *Sandbox
	req     KeepRequest
	guest   *guest

	turn  chan struct{} // full from a call's turn to its end; those that wait have it in their order
	calls int           // for the holder of turn
	note  string        // the same; what Note returns

	link  chan struct{} // full while somebody talks with the guest; a call takes it once it is admitted
	pings int64         // for the holder of link

	life context.Context // ends when there are no more calls; the cause is an *EndedError
	over context.CancelCauseFunc
	once sync.Once
}

// Closed is the reason of a Kept that Close has ended.
const Closed = "it was closed"

// EndedError is why a Kept takes no more calls.
type EndedError struct{ Reason string }

func (e *EndedError) Error() string { return "the sandbox has ended: " + e.Reason }

// Keep takes a place in the queue like a run, and returns a guest that lasts: until Close, its
// MaxAge, or a call that it didn't survive. ctx bounds the start, not the guest. Errors are those
// of Run.
func (s *Sandbox) Keep(ctx context.Context, r KeepRequest) (*Kept, error) {
	if r.MaxAge <= 0 {
		return nil, errors.New("sandbox: a guest that lasts must have an age")
	}
	req := Request{Principal: r.Principal, Timeout: s.cfg.MaxTimeout, Environment: r.Environment,
		Queued: r.Queued, Progress: r.Progress}
	if err := s.check(&req); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		req.Queued()
		return nil, err
	}
	k := &Kept{sandbox: s, req: r, calls: r.Calls, turn: make(chan struct{}, 1), link: make(chan struct{}, 1)}
	k.life, k.over = context.WithCancelCause(context.Background())
	n := newSession(s, req, nil)
	n.kept = k
	var started error
	_, err := n.admitted(ctx, func() (Result, error) {
		if started = k.start(ctx, n); n.outdated(started) {
			if started = n.rejoin(ctx); started == nil {
				started = k.start(ctx, n)
			}
		}
		return Result{}, started
	})
	if err == nil {
		err = context.Cause(ctx) // admitted says so in a Result
	}
	if k.guest == nil || err != nil {
		if k.guest != nil {
			k.guest.discard()
		}
		s.runs.Done()
		return nil, err
	}
	s.admission.keeps(1)
	go k.watch()
	return k, nil
}

// start finds the engine and starts the guest, for an admitted ticket.
func (k *Kept) start(ctx context.Context, n *session) error {
	s := k.sandbox
	if err := n.prepare(ctx); err != nil {
		s.admission.giveBack(n.ticket)
		return err
	}
	n.machine.age = k.req.MaxAge
	n.begin = time.Now()
	g := s.startGuest(n.machine, nil)
	stop := context.AfterFunc(ctx, func() { g.cut(errStopped) })
	defer stop()
	n.badFrames = g.await(s.cfg.StartTimeout)
	if g.up.IsZero() {
		g.end()
		e := ending{context.Cause(g.life), g.exit, g.err}
		g.discard()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return n.notStarted(e, g.stderr.String())
	}
	n.greet(g.hello)
	k.guest = g
	return nil
}

// watch keeps telling the guest that somebody is there, until it has ended.
func (k *Kept) watch() {
	s := k.sandbox
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.life.Done():
			k.end(ErrClosed.Error())
			return
		case <-k.guest.quiet:
			select {
			case k.turn <- struct{}{}: // a call under way knows better why
				k.fail()
				k.leave()
			case <-k.life.Done():
			}
			return
		case <-k.life.Done():
			return
		case <-tick.C:
		}
		select {
		case k.link <- struct{}{}: // or a call is being answered, which pings by itself
			ok := k.pong()
			if !ok {
				k.fail()
			}
			<-k.link
			if !ok {
				return
			}
		default:
		}
	}
}

// pong reports whether the guest answers a ping. The caller holds the link.
func (k *Kept) pong() bool {
	g := k.guest
	late := time.AfterFunc(keptPong, func() { g.cut(errNoPong) })
	defer late.Stop()
	k.pings++
	ping := entrypoint.Ping{Type: entrypoint.TypePing, N: -k.pings}
	var writing sync.WaitGroup
	defer writing.Wait() // which ends with the guest, if that doesn't read
	// A guest that isn't read from, such as one that answers the last ping of a call, doesn't read.
	writing.Go(func() { _ = g.stdin.Write(ping) }) // a failure is one to read, too
	for {
		f, err := g.frames.Read()
		switch {
		case errors.As(err, new(*entrypoint.FrameError)):
		case err != nil:
			return false
		case f.Type == entrypoint.TypePong && f.N == -k.pings:
			return true
		}
	}
}

// fail ends a guest that has ended by itself, or doesn't answer.
func (k *Kept) fail() {
	g := k.guest
	g.end()
	why := "its container ended"
	switch cause := context.Cause(g.life); {
	case cause != nil && !errors.Is(cause, errOver):
		why = cause.Error()
	case g.err != nil:
		why = "the container engine failed: " + g.err.Error()
	case g.exit.OOMKilled:
		why = "its container ran out of memory"
	case g.stderr.String() != "":
		why = strings.TrimPrefix(g.stderr.String(), "mcp-bridge guest: ")
	}
	k.end(why)
}

// end takes no more calls, and ends the guest in the background. The first reason counts.
func (k *Kept) end(why string) {
	k.once.Do(func() {
		k.over(&EndedError{why})
		k.guest.discard()
		k.sandbox.admission.keeps(-1)
		k.sandbox.runs.Done()
	})
}

// Ended reports why the guest takes no more calls, if that is so.
func (k *Kept) Ended() (reason string, ok bool) {
	if e, ok := errors.AsType[*EndedError](context.Cause(k.life)); ok {
		return e.Reason, true
	}
	return "", false
}

// Done is closed when the guest takes no more calls.
func (k *Kept) Done() <-chan struct{} { return k.life.Done() }

// Close ends the guest, and a call under way in it.
func (k *Kept) Close() error {
	k.end(Closed)
	return nil
}
