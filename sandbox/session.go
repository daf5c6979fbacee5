package sandbox

import (
	"context"
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
	ticket  *ticket
	machine machine
	inputs  []Input
	data    *received // what a sandbox's files are sent to; nil for a run
	kept    *Kept     // whose run it is; nil for a container of its own

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
	calls                  calls

	heard atomic.Int64 // when the last frame came, in Unix nanoseconds

	mu      sync.Mutex
	clock   *Clock        // nil until the code has begun
	sent    chan struct{} // closed when the order was sent; nil until the code has begun
	stopped stoppage
	waited  string // what calls were under way when the deadline came
	over    bool
}

func newSession(s *Sandbox, r Request, h Host) *session {
	n := &session{
		sandbox:  s,
		req:      r,
		ticket:   &ticket{principal: r.Principal},
		captured: newCapture(s.cfg.OutputLimit),
		files:    newCollector(s.cfg.ArtifactLimit, &s.filesHeld),
	}
	n.calls = s.newCalls(r, h, n.wg.Go)
	return n
}

// order returns the execute frame of the run, as a line.
func (n *session) order() ([]byte, error) {
	providers := n.req.Providers
	if providers == nil {
		providers = []entrypoint.Provider{}
	}
	options := n.sandbox.options(n.req, n.machine.facts)
	if n.kept != nil {
		options.Variables, options.Running = n.kept.req.Variables, n.kept.req.Running
	}
	line, err := entrypoint.Line(entrypoint.Execute{
		Type:      entrypoint.TypeExecute,
		ID:        n.req.ID,
		Code:      n.req.Code,
		File:      n.req.File,
		Options:   options,
		Providers: providers,
		Keep:      n.kept != nil,
	}, entrypoint.MaxFrame)
	if err != nil {
		return nil, fmt.Errorf("the code and what describes the tools can't be sent to the container: %w; pass "+
			"data through a tool, or name fewer servers", err)
	}
	return line, nil
}

// start sends the order, unless that was done, at the time sent, starts the clock of the code, and
// keeps telling the guest that somebody is there. In a guest that lasts it reports false, and does
// nothing, for a run that was stopped before any of it was sent. Where its files were, the guest is
// told to answer the order without running it, which clears them away.
func (n *session) start(ctx context.Context, sent time.Time, order []byte) bool {
	n.mu.Lock()
	stopped := n.kept != nil && n.stopped != notStopped
	if stopped && len(n.inputs) == 0 {
		n.mu.Unlock()
		return false
	}
	n.executed = sent
	if sent.IsZero() {
		n.executed = time.Now()
	}
	n.sent = make(chan struct{})
	n.clock = n.req.Clock
	n.clock.start(n.req.Timeout-time.Since(n.executed), n.sandbox.cfg.patience(),
		func() { n.stop(byDeadline) })
	n.mu.Unlock()
	if stopped {
		n.cancelWithin(time.Now())
	}
	n.wg.Go(func() {
		if stopped {
			n.unsentFrame(n.stdin.Write(entrypoint.Cancel{Type: entrypoint.TypeCancel, ID: n.req.ID}))
		}
		if sent.IsZero() {
			n.unsentFrame(n.stdin.WriteLine(order))
		}
		close(n.sent)
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
	return true
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
		n.waited = n.calls.underWay.waitedFor(n.req.Providers)
	}
	sent := n.sent
	n.mu.Unlock()
	if sent == nil {
		n.abandon(errStopped)
		return
	}
	n.cancelWithin(time.Now())
	<-sent // the guest knows only then what is cancelled
	n.unsentFrame(n.stdin.Write(entrypoint.Cancel{Type: entrypoint.TypeCancel, ID: n.req.ID}))
}

// isStopped reports whether the code is being stopped. It makes no more tool calls then.
func (n *session) isStopped() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopped != notStopped
}

// cancelWithin ends the container, unless it has ended by then, when nothing has come from it for a
// while: files that the code left are still read after it was killed. It is harmless when the run
// is over.
func (n *session) cancelWithin(since time.Time) {
	grace, most := cancelGrace, cancelMax
	if n.kept != nil {
		grace, most = keptGrace, keptGrace+cancelMax
	}
	time.AfterFunc(min(grace, most-time.Since(since)), func() {
		heard := time.Unix(0, n.heard.Load())
		if time.Since(heard) < grace && time.Since(since) < most {
			n.cancelWithin(since)
			return
		}
		n.cancel(errStopped)
	})
}

// stopClock ends the clock when no frame comes any more: from now on nothing can be stopped.
func (n *session) stopClock() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	if n.clock != nil {
		n.clock.end()
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
	if f.ID != n.req.ID || !n.files.add(f) {
		n.badFrames++
	}
}
