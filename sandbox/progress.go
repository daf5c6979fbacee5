package sandbox

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// progressSpacing is the least time between two progress frames of a call. Only the last before its
// result doesn't wait.
const progressSpacing = 50 * time.Millisecond

// progress passes on how far one call is. Of what is told in between, the latest counts, so a
// server that floods holds up nothing and fills no memory. A goroutine sends while there is news.
type progress struct {
	id   string
	ctx  context.Context // the call's
	send func(ctx context.Context, frame entrypoint.Progress)
	run  func(func()) // f in the background of the run

	stop    chan struct{}  // closed by finish
	sending sync.WaitGroup // the goroutine

	mu     sync.Mutex
	latest *Progress // not sent yet
	busy   bool      // the goroutine will see it
	over   bool
}

func newProgress(ctx context.Context, id string, run func(func()),
	send func(context.Context, entrypoint.Progress)) *progress {
	return &progress{id: id, ctx: ctx, send: send, run: run, stop: make(chan struct{})}
}

// tell takes a report. It never blocks.
func (p *progress) tell(r Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.latest = &r
	if !p.busy {
		p.busy = true
		p.sending.Add(1)
		p.run(p.pass)
	}
}

// finish sends what hasn't been sent yet, unless the call was cancelled, and takes no more.
func (p *progress) finish() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	close(p.stop)
	p.sending.Wait()
}

func (p *progress) pass() {
	defer p.sending.Done()
	for {
		p.mu.Lock()
		r := p.latest
		p.latest, p.busy = nil, r != nil
		p.mu.Unlock()
		if r == nil {
			return
		}
		if p.ctx.Err() == nil {
			p.send(p.ctx, entrypoint.Progress{
				Type: entrypoint.TypeProgress, CallID: p.id, Progress: r.Progress, Total: r.Total,
				Message: text.First(r.Message, entrypoint.MaxProgressText),
			})
		}
		spacing := time.NewTimer(progressSpacing)
		select {
		case <-spacing.C:
		case <-p.stop:
			spacing.Stop()
		}
	}
}
