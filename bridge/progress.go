package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

const (
	// progressSpacing is the least time between two reports of a call; what comes in between goes into the next. Only the last
	// report of a call doesn't wait.
	progressSpacing = 100 * time.Millisecond

	// progressBeat is how often a call without news reports: many clients start their patience anew with each report.
	progressBeat = time.Second

	// maxProgressText bounds the text of a report, in bytes: of more output the end is shown.
	maxProgressText = 2000
)

// progress reports on one call while it goes on, if its client asked for that. A nil *progress does nothing. What is reported is on
// its way before finish returns, so before the call's answer.
type progress struct {
	ctx   context.Context // the call's: there is nothing to report after it
	wire  *wire
	token json.RawMessage
	began time.Time

	wake  chan struct{} // there is news
	stop  chan struct{} // closed by finish
	ended chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	state  string        // what the call is at
	output string        // printed since the last report, its end
	tool   string        // the latest that a called tool has said since the last report of how far it is
	cut    bool          // output lacks its beginning
	total  time.Duration // when the call will have ended at the latest, counted from began; zero while that isn't known
	last   float64       // the last value reported
}

// startProgress begins to report on the call whose handler has ctx. finish must be called.
func startProgress(ctx context.Context) *progress {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x == nil || x.token == nil {
		return nil
	}
	p := &progress{
		ctx: ctx, wire: x.wire, token: x.token, began: time.Now(),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go p.run()
	return p
}

// run reports until finish. It never works faster than the client reads.
func (p *progress) run() {
	defer close(p.ended)
	beat := time.NewTicker(progressBeat)
	defer beat.Stop()
	for {
		select {
		case <-p.wake:
		case <-beat.C:
		case <-p.stop:
			p.report(true)
			return
		}
		p.report(false)
		spacing := time.NewTimer(progressSpacing)
		select {
		case <-spacing.C:
		case <-p.stop:
			spacing.Stop()
			p.report(true)
			return
		}
	}
}

// finish sends what hasn't been reported yet and ends the reporting.
func (p *progress) finish() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.ended
}

// at says what the call is doing now.
func (p *progress) at(state string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.state = text.Last(strings.TrimSpace(state), maxProgressText)
	p.mu.Unlock()
	p.news()
}

// running says that the code's own time begins.
func (p *progress) running(timeout time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.state = "running"
	p.total = time.Since(p.began) + timeout
	p.mu.Unlock()
}

// printed takes what the code prints. It never blocks.
func (p *progress) printed(c sandbox.Chunk) {
	p.mu.Lock()
	all := p.output + c.Text
	p.output = text.Last(all, maxProgressText)
	p.cut = p.cut || len(p.output) < len(all)
	p.mu.Unlock()
	p.news()
}

// inner says how far a call of a server's tool is. It never blocks.
func (p *progress) inner(server, tool string, r upstream.Progress) {
	if p == nil {
		return
	}
	said := r.Message
	switch {
	case said != "":
	case r.Total != nil:
		said = fmt.Sprintf("%g of %g", r.Progress, *r.Total)
	default:
		said = fmt.Sprintf("%g", r.Progress)
	}
	line := fmt.Sprintf("%s.%s: %s", server, tool, text.Line(said))
	p.mu.Lock()
	p.tool = line
	p.mu.Unlock()
	p.news()
}

func (p *progress) news() {
	select {
	case p.wake <- struct{}{}:
	default: // it will be seen anyway
	}
}

// report sends one notification; as the last one only if there is something new to show.
func (p *progress) report(last bool) {
	p.mu.Lock()
	text := p.text()
	if last && text == "" || p.ctx.Err() != nil {
		p.mu.Unlock()
		return
	}
	text = cmp.Or(text, p.state)
	p.output, p.cut, p.tool = "", false, ""
	elapsed := time.Since(p.began)
	p.last = max(toMillis(elapsed), toMillis(time.Duration(p.last*float64(time.Second))+time.Millisecond))
	var n notification
	n.JSONRPC, n.Method = "2.0", "notifications/progress"
	n.Params.Token, n.Params.Progress = p.token, p.last
	n.Params.Message = fmt.Sprintf("[%.1f s] %s", elapsed.Seconds(), text)
	if p.total > 0 {
		n.Params.Total = max(toMillis(p.total), p.last)
	}
	p.mu.Unlock()
	// A client that takes no more hears no more.
	_ = p.wire.send(p.ctx.Done(), n)
}

// text is what is new: output, and how far a tool is in a line of its own.
func (p *progress) text() string {
	text := strings.Trim(p.output, "\n")
	if p.cut {
		text = "… " + text
	}
	return strings.Trim(text+"\n"+p.tool, "\n")
}

// toMillis is a duration in seconds, to the millisecond.
func toMillis(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

type notification struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`        // seconds since the call came in
		Total    float64         `json:"total,omitempty"` // seconds at which it will be stopped
		Message  string          `json:"message"`
	} `json:"params"`
}
