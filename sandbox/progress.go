package sandbox

import (
	"context"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// progressSpacing is the least time between two progress frames of a call. Only the last before its
// result doesn't wait.
const progressSpacing = 50 * time.Millisecond

// progress passes on how far one call is. Of what is told in between, the latest counts, so a
// server that floods holds up nothing and fills no memory. The goroutine that sends begins with the
// first report.
type progress struct {
	id   string
	ctx  context.Context // the call's
	send func(ctx context.Context, frame entrypoint.Progress)
	run  func(func()) // f in the background of the run

	wake  chan struct{} // there is news
	stop  chan struct{} // closed by finish
	ended chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	latest  *Progress // not sent yet
	started bool
	over    bool
}

func newProgress(ctx context.Context, id string, run func(func()),
	send func(context.Context, entrypoint.Progress)) *progress {
	return &progress{
		id: id, ctx: ctx, send: send, run: run,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
}

// tell takes a report. It never blocks.
func (p *progress) tell(r Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.latest = &r
	if !p.started {
		p.started = true
		p.run(p.pass)
	}
	select {
	case p.wake <- struct{}{}:
	default: // it will be seen anyway
	}
}

// finish sends what hasn't been sent yet, unless the call was cancelled, and takes no more.
func (p *progress) finish() {
	p.mu.Lock()
	p.over = true
	started := p.started
	p.mu.Unlock()
	if started {
		close(p.stop)
		<-p.ended
	}
}

func (p *progress) pass() {
	defer close(p.ended)
	for {
		select {
		case <-p.wake:
		case <-p.stop:
			p.flush()
			return
		}
		p.flush()
		spacing := time.NewTimer(progressSpacing)
		select {
		case <-spacing.C:
		case <-p.stop:
			spacing.Stop()
			p.flush()
			return
		}
	}
}

func (p *progress) flush() {
	p.mu.Lock()
	r := p.latest
	p.latest = nil
	p.mu.Unlock()
	if r != nil && p.ctx.Err() == nil {
		p.send(p.ctx, entrypoint.Progress{
			Type: entrypoint.TypeProgress, CallID: p.id, Progress: r.Progress, Total: r.Total,
			Message: cut(r.Message, entrypoint.MaxProgressText),
		})
	}
}

// cut returns the first n bytes of s or a little less, so that no character is cut.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
