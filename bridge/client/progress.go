package client

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
)

const (
	// progressSpacing is the least time between two reports of a call.
	progressSpacing = 100 * time.Millisecond

	// progressQuiet is the least time between the last report of a call and its answer: the
	// TypeScript SDK handles an answer before a notification that arrives with it, and then doesn't
	// know the token. News wait as long before they are reported, so that those of a call that ends
	// are left to its answer, which has them anyway.
	progressQuiet = 50 * time.Millisecond

	// progressBeat is how often a call without news reports: each report restarts the timeout of
	// many clients.
	progressBeat = time.Second

	// maxProgressText bounds the text of a report, in bytes: of more output the end is shown.
	maxProgressText = 2000

	// waitingForUser is what a call is at while a question waits for the user's answer.
	waitingForUser = "waiting for the user's answer"
)

// Progress reports on one call while it runs, to the request that will get its result. Its methods
// may be called concurrently; those of a nil *Progress do nothing.
type Progress struct {
	ctx   context.Context // the call's: there is nothing to report after it
	began time.Time

	wake  chan struct{} // there is news
	stop  chan struct{} // closed by finish
	ended chan struct{} // closed when the goroutine has ended

	sending sync.Mutex // held while a report is sent; guards the next two
	to      *Request   // the request that gets the reports; nil drops them
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

// Report begins to report on the call that the request is, if its client wants that. Finish must be
// called.
func (r *Request) Report(ctx context.Context) *Progress {
	if r == nil || !r.wantsProgress() {
		return nil
	}
	p := &Progress{
		ctx: ctx, to: r, began: time.Now(),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	r.progress = p
	go p.run()
	return p
}

func (r *Request) wantsProgress() bool { return text.Given(r.params.Meta.Token) != nil }

// Waits reports that a question waits for the user, until answered is called. The time in the
// reports stands still meanwhile. It may be called concurrently.
func (r *Request) Waits() (answered func()) { return r.progress.waits() }

// ReportTo sends further reports on a detached request to another one; it drops them if that is nil
// or doesn't want any. It returns when the request that got the earlier ones may be answered.
func (r *Request) ReportTo(to *Request) { r.progress.reportTo(to) }

// run reports until Finish. It never works faster than the client reads.
func (p *Progress) run() {
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
func (p *Progress) goesOn(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.stop:
		return false
	}
}

// Finish ends the reporting and returns when the call may be answered.
func (p *Progress) Finish() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.ended
	p.reportTo(nil)
}

func (p *Progress) reportTo(r *Request) {
	if p == nil {
		return
	}
	if r != nil && !r.wantsProgress() {
		r = nil
	}
	p.sending.Lock()
	before, sent := p.to, p.sent
	p.to = r
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

// At notes what the call is doing now.
func (p *Progress) At(state string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.state = text.Last(strings.TrimSpace(state), maxProgressText)
	p.mu.Unlock()
	p.news()
}

// Running notes that the code's own time begins.
func (p *Progress) Running() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.state = "running"
	p.mu.Unlock()
}

func (p *Progress) waits() (answered func()) {
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

// Printed takes what the code prints. Only whole lines are reported. It doesn't block.
func (p *Progress) Printed(stream, printed string) {
	i := 0
	if stream == "stderr" {
		i = 1
	}
	p.mu.Lock()
	// A bar that is drawn over itself is as many lines.
	all := p.begun[i] + strings.ReplaceAll(printed, "\r", "\n")
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

// Tool notes in a line how far a call of a tool is. It doesn't block.
func (p *Progress) Tool(line string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.tool = line
	p.mu.Unlock()
	p.news()
}

func (p *Progress) news() {
	select {
	case p.wake <- struct{}{}:
	default: // it will be seen anyway
	}
}

// report sends one notification unless no request is listening.
func (p *Progress) report() {
	p.sending.Lock()
	defer p.sending.Unlock()
	if p.to == nil || p.ctx.Err() != nil {
		return
	}
	n := report{Token: p.to.params.Meta.Token}
	n.Progress, n.Message = p.next()
	// A client that takes no more hears no more.
	_ = p.to.out.Notify(p.ctx, "notifications/progress", n)
	p.sent = time.Now()
}

// next returns what to report now. The state is said again where nothing is new.
func (p *Progress) next() (value float64, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := p.text()
	if fresh != "" {
		p.state = fresh[strings.LastIndexByte(fresh, '\n')+1:]
	}
	said := cmp.Or(fresh, p.state)
	p.lines, p.cut, p.tool = "", false, ""
	elapsed := time.Since(p.began) - p.waited
	if p.waiting > 0 {
		elapsed -= time.Since(p.since)
		said = strings.TrimPrefix(fresh+"\n"+waitingForUser, "\n")
	}
	p.last = max(toMillis(elapsed), toMillis(time.Duration(p.last*float64(time.Second))+time.Millisecond))
	return p.last, fmt.Sprintf("[%.1f s] %s", elapsed.Seconds(), said)
}

// text returns what is new: output, and how far a tool is in a line of its own.
func (p *Progress) text() string {
	lines := strings.Trim(p.lines, "\n")
	if p.cut {
		lines = "… " + lines
	}
	return strings.Trim(lines+"\n"+p.tool, "\n")
}

// toMillis returns a duration in seconds, to the millisecond.
func toMillis(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// report has no total, since the end of the code isn't known.
type report struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress float64         `json:"progress"` // seconds since the call came in, without those of questions
	Message  string          `json:"message"`
}
