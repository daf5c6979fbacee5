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
	// progressSpacing is the least time between two reports of a call; what comes in between goes into the next.
	progressSpacing = 100 * time.Millisecond

	// progressQuiet is the least time between the last report of a call and its answer. The TypeScript SDK handles an answer
	// before a notification that arrives together with it, and takes the token for one that it doesn't know. News wait as
	// long before they are reported, so that those of a call that ends are left to its answer, which has them anyway.
	progressQuiet = 50 * time.Millisecond

	// progressBeat is how often a call without news reports: each report restarts the timeout of many
	// clients.
	progressBeat = time.Second

	// maxProgressText bounds the text of a report, in bytes: of more output the end is shown.
	maxProgressText = 2000

	// waitingForUser is what a call is at while a question waits for the user's answer.
	waitingForUser = "waiting for the user's answer"
)

// progress reports on one call while it runs, to the request that will get its result, if that asked
// for progress. A nil *progress does nothing.
type progress struct {
	ctx   context.Context // the call's: there is nothing to report after it
	began time.Time

	wake  chan struct{} // there is news
	stop  chan struct{} // closed by finish
	ended chan struct{} // closed when the goroutine has ended

	sending sync.Mutex // held while a report is sent; guards the next two
	to      *exchange  // the request that gets the reports; nil drops them
	sent    time.Time  // when the last report was

	mu      sync.Mutex
	state   string    // what the call is at: the last line that was reported, or a word of ours
	lines   string    // whole lines printed since the last report, their end
	begun   [2]string // the lines that stdout and stderr are at, which aren't whole
	tool    string    // the latest that a called tool has said since the last report of how far it is
	cut     bool      // lines lacks its beginning
	waiting int       // questions that the user has
	since   time.Time // when waiting became more than none
	waited  time.Duration
	last    float64 // the last value reported
}

// startProgress begins to report on the call whose handler has ctx. finish must be called.
func startProgress(ctx context.Context) *progress {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x == nil || x.token == nil {
		return nil
	}
	p := &progress{
		ctx: ctx, to: x, began: time.Now(),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	x.progress = p
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
			return
		}
		if !p.goesOn(progressQuiet) {
			return
		}
		p.report()
		if !p.goesOn(progressSpacing - progressQuiet) {
			return
		}
	}
}

// goesOn waits for d, and returns false when the call ends meanwhile.
func (p *progress) goesOn(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.stop:
		return false
	}
}

// finish ends the reporting and returns when the call may be answered.
func (p *progress) finish() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.ended
	p.reportTo(nil)
}

// reportTo sends later reports to x; it drops them if x is nil or has no progress token. It returns
// when the request that got the earlier ones may be answered.
func (p *progress) reportTo(x *exchange) {
	if p == nil {
		return
	}
	if x != nil && x.token == nil {
		x = nil
	}
	p.sending.Lock()
	before, sent := p.to, p.sent
	p.to = x
	p.sending.Unlock()
	if before == nil || sent.IsZero() {
		return
	}
	quiet := time.NewTimer(time.Until(sent.Add(progressQuiet)))
	defer quiet.Stop()
	select {
	case <-quiet.C:
	case <-p.ctx.Done():
	}
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
func (p *progress) running() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.state = "running"
	p.mu.Unlock()
}

// waits reports that a question waits for the user, until answered is called. The time in the
// reports stands still meanwhile.
func (p *progress) waits() (answered func()) {
	if p == nil {
		return func() {}
	}
	p.mu.Lock()
	if p.waiting++; p.waiting == 1 {
		p.since = time.Now()
	}
	p.mu.Unlock()
	p.news()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.waiting--; p.waiting == 0 {
			p.waited += time.Since(p.since)
		}
	}
}

// printed takes what the code prints. Only whole lines are reported. It never blocks.
func (p *progress) printed(c sandbox.Chunk) {
	i := 0
	if c.Stream == "stderr" {
		i = 1
	}
	p.mu.Lock()
	all := p.begun[i] + strings.ReplaceAll(c.Text, "\r", "\n") // a bar that is drawn over itself is as many lines
	end := strings.LastIndexByte(all, '\n') + 1
	p.begun[i] = text.Last(all[end:], maxProgressText)
	lines := p.lines + all[:end]
	p.lines = text.Last(lines, maxProgressText)
	p.cut = p.cut || len(p.lines) < len(lines)
	p.mu.Unlock()
	if end > 0 {
		p.news()
	}
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

// report sends one notification unless no request is listening.
func (p *progress) report() {
	p.sending.Lock()
	defer p.sending.Unlock()
	if p.to == nil || p.ctx.Err() != nil {
		return
	}
	var n notification
	n.JSONRPC, n.Method, n.Params.Token = "2.0", "notifications/progress", p.to.token
	n.Params.Progress, n.Params.Message = p.next()
	// A client that takes no more hears no more.
	_ = p.to.wire.send(p.ctx.Done(), n)
	p.sent = time.Now()
}

// next returns what to report now. What is at is said again where nothing is new.
func (p *progress) next() (value float64, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := p.text()
	if fresh != "" {
		p.state = fresh[strings.LastIndexByte(fresh, '\n')+1:]
	}
	text := cmp.Or(fresh, p.state)
	p.lines, p.cut, p.tool = "", false, ""
	elapsed := time.Since(p.began) - p.waited
	if p.waiting > 0 {
		elapsed -= time.Since(p.since)
		text = strings.TrimPrefix(fresh+"\n"+waitingForUser, "\n")
	}
	p.last = max(toMillis(elapsed), toMillis(time.Duration(p.last*float64(time.Second))+time.Millisecond))
	return p.last, fmt.Sprintf("[%.1f s] %s", elapsed.Seconds(), text)
}

// text is what is new: output, and how far a tool is in a line of its own.
func (p *progress) text() string {
	text := strings.Trim(p.lines, "\n")
	if p.cut {
		text = "… " + text
	}
	return strings.Trim(text+"\n"+p.tool, "\n")
}

// toMillis is a duration in seconds, to the millisecond.
func toMillis(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// notification is a report. It has no total, since the end of the code isn't known.
type notification struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"` // seconds since the call came in, without those of questions
		Message  string          `json:"message"`
	} `json:"params"`
}
