package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// session is one run: its place in the queue, and its talk with one guest. The fields without a
// lock belong to the goroutine that reads the frames.
type session struct {
	sandbox *Sandbox
	req     Request
	host    Host
	ticket  *ticket
	machine machine
	inputs  []Input

	stdin   *entrypoint.Writer
	cancel  context.CancelCauseFunc // kills the container; what was printed is still read
	abandon func(cause error)       // kills it and reads no more
	wg      sync.WaitGroup          // every goroutine of the run but the driver's

	begin, executed, ended time.Time
	queued, preparing      time.Duration
	prepared               bool // engine and image were found
	unfiltered             bool
	note                   string // of the guest, on its filter
	done                   *entrypoint.FromGuest
	badFrames              int
	captured               *capture
	files                  *collector
	callIDs                map[string]bool
	underWay               underWay
	helpers                chan struct{}
	pending                atomic.Int64 // goroutines that answer calls
	pendingBytes           atomic.Int64 // what they hold of the guest's
	unsent                 *backlog     // results that have not been sent yet
	untaken                *credit      // results that were sent, and that the code has not taken yet

	heard atomic.Int64 // when the last frame came, in Unix nanoseconds

	mu      sync.Mutex
	clock   *clock
	stopped stoppage
	waited  string // what calls were under way when the deadline came
	over    bool
}

func newSession(s *Sandbox, r Request, h Host) *session {
	return &session{
		sandbox:  s,
		req:      r,
		host:     h,
		ticket:   &ticket{},
		captured: newCapture(s.cfg.OutputLimit),
		files:    newCollector(s.cfg.ArtifactLimit, &s.filesHeld),
		callIDs:  map[string]bool{},
		helpers:  make(chan struct{}, maxHelpers),
		unsent:   newBacklog(maxPendingBytes, maxUnsent, allUnsent, &s.resultsHeld),
		untaken:  newCredit(maxUntaken),
	}
}

func (n *session) background(f func()) { n.wg.Go(f) }

// order is the execute frame of the run, as a line.
func (n *session) order() ([]byte, error) {
	providers := n.req.Providers
	if providers == nil {
		providers = []entrypoint.Provider{}
	}
	line, err := entrypoint.Line(entrypoint.Execute{
		Type:      entrypoint.TypeExecute,
		ID:        n.req.ID,
		Code:      n.req.Code,
		File:      n.req.File,
		Options:   n.sandbox.options(n.req, n.machine.facts),
		Providers: providers,
	}, entrypoint.MaxFrame)
	if err != nil {
		return nil, fmt.Errorf("the code and what describes the tools can't be sent to the container: %w; pass data through a tool, or name fewer servers", err)
	}
	return line, nil
}

// start sends the order, unless that was done, at the time sent, starts the clock of the code, and
// keeps telling the guest that somebody is there.
func (n *session) start(ctx context.Context, sent time.Time, order []byte) {
	n.executed = sent
	if sent.IsZero() {
		n.executed = time.Now()
	}
	n.mu.Lock()
	n.clock = startClock(n.req.Timeout-time.Since(n.executed), n.sandbox.cfg.patience(), n.deadline)
	n.req.Clock.set(n.clock)
	n.mu.Unlock()
	n.background(func() {
		if sent.IsZero() {
			n.unsentFrame(n.stdin.WriteLine(order))
		}
		tick := time.NewTicker(pingEvery)
		defer tick.Stop()
		for i := int64(1); ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				n.unsentFrame(n.stdin.Write(entrypoint.Ping{Type: entrypoint.TypePing, N: i}))
			}
		}
	})
}

// unsentFrame logs that a frame could not be written, and drops it: a guest that is gone is noticed
// at its stdout.
func (n *session) unsentFrame(err error) {
	if err != nil {
		n.sandbox.log.Debug("frame not sent", "run", n.req.ID, "err", err)
	}
}

// stoppage is why the host had the code stopped.
type stoppage int

const (
	notStopped stoppage = iota
	byDeadline
	byCaller
)

func (n *session) deadline()  { n.stop(byDeadline) }
func (n *session) cancelled() { n.stop(byCaller) }

// stop has the guest kill the code, so that what was printed still arrives, and ends the container
// if that takes too long, or at once if there is no code yet. The first reason counts. It runs in a
// goroutine of the clock or of the caller's context, which the run doesn't wait for: it touches
// nothing but what is locked or lasting.
func (n *session) stop(why stoppage) {
	n.mu.Lock()
	if n.stopped != notStopped || n.over {
		n.mu.Unlock()
		return
	}
	n.stopped = why
	if why == byDeadline {
		n.waited = n.underWay.waitedFor(n.req.Providers)
	}
	begun := n.clock != nil
	n.mu.Unlock()
	if !begun {
		n.abandon(errStopped)
		return
	}
	n.cancelWithin(time.Now())
	n.unsentFrame(n.stdin.Write(entrypoint.Cancel{Type: entrypoint.TypeCancel, ID: n.req.ID}))
}

// cancelWithin ends the container, unless it has ended by then, when nothing has come from it for a
// while: files that the code left are still read after it was killed. It is harmless when the run
// is over.
func (n *session) cancelWithin(since time.Time) {
	time.AfterFunc(cancelGrace, func() {
		heard := time.Unix(0, n.heard.Load())
		if time.Since(heard) < cancelGrace && time.Since(since) < cancelMax {
			n.cancelWithin(since)
			return
		}
		n.cancel(errStopped)
	})
}

// stopClock is for when no frame comes any more: from now on nothing can be stopped.
func (n *session) stopClock() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	if n.clock != nil {
		n.clock.stop()
	}
}

func (n *session) output(f entrypoint.FromGuest) {
	if f.ID != n.req.ID || (f.Stream != "stdout" && f.Stream != "stderr") {
		n.badFrames++
		return
	}
	ch := Chunk{Stream: f.Stream, Text: f.Text}
	n.captured.add(ch)
	if n.req.Output != nil {
		n.req.Output(ch)
	}
}

func (n *session) artifact(f entrypoint.FromGuest) {
	if f.ID != n.req.ID || n.executed.IsZero() || !n.files.add(f) {
		n.badFrames++
	}
}

// Bounds of the calls that are answered or wait for that, of one run. The guest itself keeps to
// about 1,024 at a time.
const (
	maxPending      = 4096
	maxHelpers      = 64                      // of the runtime's own; upstream bounds those of each server
	maxPendingBytes = 64 << 20                // of their inputs; and of results that could not be sent yet, before further calls wait
	maxUnsent       = 512 << 20               // of these at most; a result beyond is dropped, and its call fails
	allUnsent       = maxUnsent + maxUnsent/4 // of all runs, but for a share of each
	maxUntaken      = 16 << 20                // bytes of results that are with the guest's supervisor, before further ones wait
	maxCallID       = 128                     // bytes
	maxCallName     = 4 << 10                 // bytes of a server's or tool's name
)

// toolCall has one call answered in a goroutine of its own, so that the guest's output is still
// read.
func (n *session) toolCall(ctx context.Context, f entrypoint.FromGuest) {
	if f.CallID == "" || len(f.CallID) > maxCallID || len(f.Provider) > maxCallName || len(f.Tool) > maxCallName ||
		n.executed.IsZero() || n.callIDs[f.CallID] || n.pending.Load() >= maxPending {
		n.badFrames++
		return
	}
	refuse := func(format string, a ...any) {
		err := &entrypoint.CallError{Code: entrypoint.CodeCallLimit, Message: fmt.Sprintf(format, a...)}
		n.answering(0, func() { n.answer(ctx, f.CallID, nil, err) })
	}
	size := int64(len(f.Input))
	switch {
	case len(n.callIDs) >= n.sandbox.cfg.MaxCalls:
		refuse("this run has made %d tool calls, which is the limit of one run", n.sandbox.cfg.MaxCalls)
		return
	case n.pendingBytes.Load()+size > maxPendingBytes:
		refuse("the calls under way hold %d MiB of arguments, which is the limit; wait for some of them", maxPendingBytes>>20)
		return
	}
	n.callIDs[f.CallID] = true
	call, end := n.underWay.begin(ctx, f)
	n.answering(size, func() {
		defer end()
		if f.Provider == entrypoint.RuntimeProvider {
			select {
			case n.helpers <- struct{}{}:
				defer func() { <-n.helpers }()
			case <-call.Done():
			}
		}
		if ctx.Err() != nil {
			return // the run is over, though call may not have heard of it yet: no call begins now
		}
		result, err := n.result(call, f)
		if ctx.Err() != nil {
			return // nobody listens any more
		}
		held := int64(len(result))
		if !n.unsent.hold(held) {
			result, err, held = nil, errUnsent, 0
		}
		defer n.unsent.release(held)
		n.answer(ctx, f.CallID, result, err)
	})
}

var errUnsent = &entrypoint.CallError{
	Code: entrypoint.CodeOutputLimit,
	Message: fmt.Sprintf("the tool's answer was dropped: results that the code has not read yet may hold %d MiB of a run, and %d of all runs; read them before you ask for more, or ask for less at a time",
		maxUnsent>>20, allUnsent>>20),
}

// answering runs f in the background and counts it, and the bytes it holds, while it runs.
func (n *session) answering(size int64, f func()) {
	n.pending.Add(1)
	n.pendingBytes.Add(size)
	n.background(func() {
		defer func() {
			n.pendingBytes.Add(-size)
			n.pending.Add(-1)
		}()
		f()
	})
}

// answer sends a tool_result when the guest has room for it, unless ctx ends before. One that is
// too long for a frame is replaced by an error that says so.
func (n *session) answer(ctx context.Context, id string, result json.RawMessage, err error) {
	frame := entrypoint.ToolResult{Type: entrypoint.TypeToolResult, CallID: id, OK: err == nil, Result: result}
	if err != nil {
		frame.Result, frame.Error = nil, callError(err)
	} else if len(result) == 0 {
		frame.Result = json.RawMessage("null")
	}
	line, err := n.stdin.Encode(frame)
	var bad *entrypoint.FrameError
	if errors.As(err, &bad) {
		line, err = n.stdin.Encode(entrypoint.ToolResult{Type: entrypoint.TypeToolResult, CallID: id, Error: unsendable(bad)})
	}
	if err == nil && n.untaken.spend(ctx, int64(len(line))) {
		err = n.stdin.WriteLine(line)
	}
	if err != nil {
		n.sandbox.log.Debug("result not sent", "run", n.req.ID, "err", err)
	}
}

func unsendable(bad *entrypoint.FrameError) *entrypoint.CallError {
	if bad.Limit == 0 {
		return &entrypoint.CallError{Code: entrypoint.CodeInternal, Message: "the tool's answer can't be passed on, since it is no JSON; report it to the server's makers"}
	}
	return &entrypoint.CallError{
		Code:    entrypoint.CodeOutputLimit,
		Message: fmt.Sprintf("the tool's answer of %d bytes can't be passed on: %v; ask the tool for less at a time", bad.Size, bad),
	}
}

func callError(err error) *entrypoint.CallError {
	var ce *entrypoint.CallError
	if errors.As(err, &ce) {
		return ce
	}
	return &entrypoint.CallError{Code: entrypoint.CodeTool, Message: err.Error()}
}
