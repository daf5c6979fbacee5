package bridge

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestBusy: a call that finds no place in the queue is told why, and what to do.
func TestBusy(t *testing.T) {
	b := build(t, func(c *Config) {
		c.Runner = fakeRunner{run: func(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
			return sandbox.Result{}, &sandbox.QueueError{Running: 1, Waiting: 1, Full: true}
		}}
	})
	p := connect(t, b)
	p.run(1, `{"code":"x"}`, "")
	const want = "status: busy — the queue is full (MCP_BRIDGE_QUEUE), so the code was not run: 1 under way " +
		"(MCP_BRIDGE_MAX_CONCURRENT), 1 waiting. Next: call again when some of the calls have ended, and do more " +
		"work in each run"
	f := p.next()
	if r := f.tool(t); !r.IsError || r.Content[0].Text != want {
		t.Errorf("got  %s\nwant %s", r.Content[0].Text, want)
	}
}

// TestTimesAreToldApart: queue, start and run in the structured result and in the log, and a wait
// worth knowing in the text.
func TestTimesAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		b := build(t, func(c *Config) {
			c.OutputMode, c.Log = OutputStructured, log.logger()
			c.Runner = fakeRunner{run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
				error) {
				time.Sleep(8 * time.Second)
				res := printed(r.Code)
				res.Took = sandbox.Took{Queued: 3 * time.Second, Prepared: 2 * time.Second, Start: time.Second,
					Run: 2 * time.Second, Total: 8 * time.Second}
				return res, nil
			}}
		})
		p := connect(t, b)
		p.run(1, `{"code":"x"}`, "")
		f := receive(p)
		r := f.tool(t)
		if r.Content[0].Text != "x\n[the call waited 3.0 s for other calls to end before its own began]" ||
			!strings.Contains(string(r.Struct), `"durations":{"queueMs":3000,"prepareMs":2000,"startMs":1000,`+
				`"runMs":2000,"totalMs":8000}`) {
			t.Errorf("got %q\n%s", r.Content[0].Text, r.Struct)
		}
		synctest.Wait() // the line is written when the call is answered
		log.mu.Lock()
		defer log.mu.Unlock()
		if want := `"queued":3000000000,"started":3000000000,"ran":2000000000,"took":8000000000`; !strings.Contains(
			log.text.String(), want) {
			t.Errorf("logged %s, want %s", log.text.String(), want)
		}
	})
}

// receive waits for a message in a bubble, where next would let its own time-out come first.
func receive(p *peer) frame { return <-p.frames }
