package bridge

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestProgressComesBeforeTheAnswer: mcp-go's own stdio server had it behind the answer 200 times of 200.
func TestProgressComesBeforeTheAnswer(t *testing.T) {
	p := connect(t, running(t, func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
		for i := range 3 {
			r.Output(sandbox.Chunk{Stream: "stdout", Text: fmt.Sprintf("line %d\n", i)})
		}
		return printed("x"), nil
	}))
	for i := range 200 {
		p.run(i, `{"code":"x"}`, `{"progressToken":9007199254740993}`)
		var text strings.Builder
		last := -1.0
		for {
			f := p.next()
			if f.Method == "" {
				if string(f.ID) != fmt.Sprint(i) {
					t.Fatalf("call %d got the answer of %s", i, f.ID)
				}
				break
			}
			if f.Method != "notifications/progress" || string(f.Params.Token) != "9007199254740993" {
				t.Fatalf("got %+v", f)
			}
			if f.Params.Progress <= last || f.Params.Total != 0 && f.Params.Total < f.Params.Progress {
				t.Errorf("progress %v of %v after %v", f.Params.Progress, f.Params.Total, last)
			}
			last = f.Params.Progress
			_, line, _ := strings.Cut(f.Params.Message, "] ")
			text.WriteString(line + "\n")
		}
		for j := range 3 {
			if strings.Count(text.String(), fmt.Sprintf("line %d\n", j)) != 1 {
				t.Fatalf("call %d: before the answer came %q", i, text.String())
			}
		}
	}
	if len(p.frames) != 0 {
		t.Errorf("%d messages came after the answers", len(p.frames))
	}
}

func TestNoProgressUnlessAskedFor(t *testing.T) {
	p := connect(t, running(t, func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
		if r.Output != nil {
			t.Error("output is collected for nobody")
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

// TestProgressOverTime: preparing is outside the run's time, reports are apart, and silence is reported too.
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
					r.Output(sandbox.Chunk{Stream: "stderr", Text: strings.Repeat("é", 5000)})
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
		for i := 1; i < len(reports)-1; i++ {
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
		if m := reports[0].Params; !strings.HasSuffix(m.Message, "] pulling layer 1") && !strings.HasSuffix(m.Message, "] preparing") || m.Total != 0 {
			t.Errorf("the first report is %+v", m)
		}
		last := reports[len(reports)-1].Params
		if last.Total != 70 || !strings.HasPrefix(last.Message, "[65.0 s] … éé") || len(last.Message) > maxProgressText+20 {
			t.Errorf("the last report is %v of %v: %.40s (%d bytes)", last.Progress, last.Total, last.Message, len(last.Message))
		}
		var silent int
		for _, r := range reports {
			if strings.HasSuffix(r.Params.Message, "] running") {
				silent++
			}
		}
		if silent < 3 {
			t.Errorf("%d reports of a silent run", silent)
		}
	})
}
