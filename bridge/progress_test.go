package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// What the client is promised of reports.
const (
	progressQuiet   = 50 * time.Millisecond
	progressSpacing = 100 * time.Millisecond
	maxProgressText = 2000
)

// TestNoProgressBesideTheAnswer: the TypeScript SDK loses the token of a call whose answer arrives
// together with a report, and calls the report a protocol error. Whenever the code ends, the last
// report is progressQuiet before the answer.
func TestNoProgressBesideTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, running(t, func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
			error) {
			var ms int
			_, _ = fmt.Sscan(r.Code, &ms)
			for end := time.Now().Add(time.Duration(ms) * time.Millisecond); time.Now().Before(end); time.Sleep(
				time.Millisecond) {
				r.Output(sandbox.Chunk{Stream: "stdout", Text: "line\n"})
			}
			return printed("x"), nil
		}))
		defer p.in.Close()
		for i := range 150 {
			ms := 7 * i
			p.run(i, fmt.Sprintf(`{"code":"%d "}`, ms), `{"progressToken":9007199254740993}`)
			var last time.Time
			began, value, reports := time.Now(), -1.0, 0
			for f := p.next(); f.Method != ""; f = p.next() {
				if f.Method != "notifications/progress" || string(f.Params.Token) != "9007199254740993" ||
					f.Params.Progress <= value {
					t.Fatalf("got %+v after %v", f, value)
				}
				last, value = time.Now(), f.Params.Progress
				reports++
			}
			if since := time.Since(last); since < progressQuiet {
				t.Errorf("code of %d ms: a report was %v before the answer", ms, since)
			}
			if late := time.Since(began) - time.Duration(ms)*time.Millisecond; late > progressQuiet+time.Millisecond {
				t.Errorf("code of %d ms: the answer came %v after its end", ms, late)
			}
			if want := ms / 130; reports < want {
				t.Errorf("code of %d ms: %d reports", ms, reports)
			}
		}
		if len(p.frames) != 0 {
			t.Errorf("%d messages came after the answers", len(p.frames))
		}
	})
}

// TestProgressLines: a report holds whole lines, of each stream, and the last one stands until
// there is another.
func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, running(t, func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
			error) {
			for _, text := range []string{"tick", " ", "3", "\n", "half"} {
				r.Output(sandbox.Chunk{Stream: "stdout", Text: text})
				r.Output(sandbox.Chunk{Stream: "stderr", Text: "e"})
				time.Sleep(400 * time.Millisecond)
			}
			time.Sleep(2 * time.Second)
			r.Output(sandbox.Chunk{Stream: "stderr", Text: "\r10%\r20%\r"})
			time.Sleep(3 * time.Second)
			return printed("x"), nil
		}))
		defer p.in.Close()
		p.run(1, `{"code":"x"}`, `{"progressToken":"t"}`)
		var got []string
		for f := p.next(); f.Method != ""; f = p.next() {
			if _, text, _ := strings.Cut(f.Params.Message, "] "); len(got) == 0 || got[len(got)-1] != text {
				got = append(got, text)
			}
			if bytes.Contains(f.raw, []byte("total")) {
				t.Errorf("a report says when the code will have ended: %s", f.raw)
			}
		}
		want := []string{"running", "tick 3", "eeeee\n10%\n20%", "20%"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestProgressWhileAsking: a report says that the user is asked, and its clock stands still.
func TestProgressWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, asking(t))
		defer p.in.Close()
		p.introduce(`{"elicitation":{}}`)
		p.run(1, `{"code":"elicitation/create {\"message\":\"May I?\"}"}`, `{"progressToken":"t"}`)
		q := p.next()
		value := -1.0
		for range 10 {
			f := p.next()
			if f.Params.Message != "[0.0 s] waiting for the user's answer" || f.Params.Progress <= value ||
				f.Params.Progress > 0.2 {
				t.Errorf("got %v %q after %v", f.Params.Progress, f.Params.Message, value)
			}
			value = f.Params.Progress
		}
		p.send(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, q.ID)
		if f := p.next(); !strings.Contains(f.tool(t).Content[0].Text, "decline") {
			t.Errorf("got %+v", f)
		}
	})
}

func TestNoProgressUnlessAskedFor(t *testing.T) {
	p := connect(t, running(t, func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
		error) {
		if r.Output != nil {
			t.Error("output is collected for no one")
		}
		return printed("x"), nil
	}))
	for _, meta := range []string{"", `{}`, `{"progressToken":null}`} {
		p.run(1, `{"code":"x"}`, meta)
		if f := p.next(); f.Method != "" {
			t.Errorf("%s: got %+v", meta, f)
		}
	}
}

// TestProgressOverTime: preparing is outside the run's time, reports are apart, and silence is
// reported too.
func TestProgressOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, func(c *Config) {
			c.Runner = fakeRunner{
				prepare: func(_ context.Context, p runtime.Progress) error {
					p("pulling layer 1")
					time.Sleep(60 * time.Second)
					return nil
				},
				run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
					for i := range 1000 {
						r.Output(sandbox.Chunk{Stream: "stdout", Text: fmt.Sprintf("line %d\n", i)})
						time.Sleep(time.Millisecond)
					}
					time.Sleep(4 * time.Second)
					r.Output(sandbox.Chunk{Stream: "stderr", Text: strings.Repeat("é", 5000) + "\n"})
					time.Sleep(100 * time.Millisecond)
					return printed("x"), nil
				},
			}
		})
		p := connect(t, b)
		defer p.in.Close()
		p.run(1, `{"code":"x","timeout":10}`, `{"progressToken":"t"}`)
		var reports []frame
		var at []time.Time
		for {
			f := p.next()
			if f.Method == "" {
				break
			}
			reports, at = append(reports, f), append(at, time.Now())
		}
		for i := 1; i < len(reports); i++ {
			if gap := at[i].Sub(at[i-1]); gap < progressSpacing {
				t.Errorf("reports %d and %d are %v apart", i-1, i, gap)
			}
			if reports[i].Params.Progress <= reports[i-1].Params.Progress {
				t.Errorf("progress falls from %v to %v", reports[i-1].Params.Progress, reports[i].Params.Progress)
			}
		}
		if n := len(reports); n < 60+5 || n > 60+5+15 {
			t.Errorf("%d reports", n)
		}
		if m := reports[0].Params; !strings.HasSuffix(m.Message, "] pulling layer 1") &&
			!strings.HasSuffix(m.Message, "] preparing") {
			t.Errorf("the first report is %+v", m)
		}
		last := reports[len(reports)-1].Params
		if !strings.HasPrefix(last.Message, "[65.0 s] … éé") && !strings.HasPrefix(last.Message, "[65.1 s] … éé") ||
			len(last.Message) > maxProgressText+20 {
			t.Errorf("the last report is %v: %.40s (%d bytes)", last.Progress, last.Message, len(last.Message))
		}
		var silent int
		for _, r := range reports {
			if strings.HasSuffix(r.Params.Message, "] line 999") {
				silent++
			}
		}
		if silent < 3 {
			t.Errorf("%d reports of a silent run", silent)
		}
	})
}

// reporting is a bridge whose servers report on every call before they answer, where somebody has
// asked for that, and whose run is one call for which the code has asked or not.
func reporting(t *testing.T, say func(tell func(upstream.Progress)), toCode func(sandbox.Progress)) *Bridge {
	t.Helper()
	return build(t, func(c *Config) {
		u := c.Upstreams.(fakeUpstreams)
		u.call = func(ctx context.Context, _, _ string, _ json.RawMessage) (json.RawMessage, error) {
			tell := upstream.Observer(ctx)
			if tell == nil {
				return json.RawMessage(`{"content":[],"asked":false}`), nil
			}
			say(tell)
			time.Sleep(progressSpacing) // so that what was said last is reported
			return json.RawMessage(`{"content":[],"asked":true}`), nil
		}
		c.Upstreams = u
		c.Runner = fakeRunner{run: func(ctx context.Context, _ sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			raw, err := h.Call(ctx, sandbox.Call{Provider: "github", Tool: "list_issues", Progress: toCode})
			return printed(string(raw)), err
		}}
	})
}

// TestInnerProgress: who has asked for the progress of a tool's call hears of it, and no server is
// asked without need.
func TestInnerProgress(t *testing.T) {
	four := 4.0
	say := func(tell func(upstream.Progress)) {
		tell(upstream.Progress{Progress: 1, Total: &four, Message: "look\ning\x1b[2J"})
		tell(upstream.Progress{Progress: 2, Total: &four})
	}
	for _, tt := range []struct {
		name         string
		client, code bool
	}{{"no one asks", false, false}, {"the client", true, false}, {"the code", false, true},
		{"both", true, true}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var heard []string
				var toCode func(sandbox.Progress)
				if tt.code {
					toCode = func(p sandbox.Progress) {
						heard = append(heard, fmt.Sprintf("%v %v %s", p.Progress, *p.Total, p.Message))
					}
				}
				meta := ""
				if tt.client {
					meta = `{"progressToken":"t"}`
				}
				p := connect(t, reporting(t, say, toCode))
				defer p.in.Close()
				p.run(1, `{"code":"x"}`, meta)
				last, answer := "", p.next()
				for answer.Method != "" {
					last, answer = answer.Params.Message, p.next()
				}
				if want := fmt.Sprintf(`\"asked\":%v`, tt.client || tt.code); !strings.Contains(string(answer.Result),
					want) {
					t.Errorf("the answer is %s, want %s in it", answer.Result, want)
				}
				if got := strings.HasSuffix(last, "] github.list_issues: 2 of 4"); got != tt.client {
					t.Errorf("the client heard %q last", last)
				}
				want := []string{"1 4 look\ning\x1b[2J", "2 4 "}
				if !tt.code {
					want = nil
				}
				if diff := cmp.Diff(want, heard); diff != "" {
					t.Errorf("the code heard (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestFloodOfInnerProgress: however often a server reports, the client hears of it no more often
// than of anything else, and output isn't lost over it.
func TestFloodOfInnerProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := reporting(t, func(tell func(upstream.Progress)) {
			for i := range 100_000 {
				tell(upstream.Progress{Progress: float64(i), Message: "m\n" +
					strings.Repeat("x", upstream.MaxProgressText-2)})
				if i%100 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		}, nil)
		p := connect(t, b)
		defer p.in.Close()
		p.run(1, `{"code":"x"}`, `{"progressToken":"t"}`)
		n := 0
		for {
			f := p.next()
			if f.Method == "" {
				break
			}
			n++
			if _, text, _ := strings.Cut(f.Params.Message, "] "); strings.Contains(text, "\n") ||
				len(text) > upstream.MaxProgressText+30 {
				t.Errorf("a report of %d bytes: %.100q", len(text), text)
			}
		}
		if n < 8 || n > 13 { // in one second
			t.Errorf("%d reports", n)
		}
	})
}
