package bridge

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// pulling is a bridge of one place, room for one and patience of 30 s, whose image takes so long to come, and whose runs take an hour,
// or a second where their code is "short".
func pulling(t *testing.T, pull time.Duration) *Bridge {
	return build(t, func(c *Config) {
		c.MaxConcurrent, c.Queue, c.QueueTimeout = 1, 1, 30*time.Second
		there := time.Now().Add(pull)
		c.Runner = fakeRunner{
			prepare: func(ctx context.Context, _ runtime.Progress) error {
				select {
				case <-time.After(time.Until(there)):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			},
			run: func(ctx context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
				takes := time.Hour
				if r.Code == "short" {
					takes = time.Second
				}
				select {
				case <-time.After(takes):
				case <-ctx.Done():
				}
				return printed(r.Code), nil
			},
		}
	})
}

// TestQueueWaitsForTheImage: while the calls before it wait for an image, the patience of one in the queue is not used up; it is when they
// run. Whoever is told of the queue meanwhile hears that nothing runs yet.
func TestQueueWaitsForTheImage(t *testing.T) {
	const preparing = "1 calls are under way (MCP_BRIDGE_MAX_CONCURRENT), 1 of them still waiting for the engine or the image,"
	for _, c := range []struct {
		name, first string
		pull, after time.Duration // until the second call is answered
		want        string
	}{
		{"let in", "short", 3 * time.Minute, 3*time.Minute + 2*time.Second,
			"short\n[the call waited 181.0 s for other calls to end before its own began]"},
		{"turned away by a run", "long", 3 * time.Minute, 3*time.Minute + 30*time.Second,
			"status: busy — the code was not run, since the call has waited in the queue for 3m30s, longer than one may (MCP_BRIDGE_QUEUE_TIMEOUT, " +
				"not counting up to 20m0s in which others wait for the engine or the image): 1 calls are under way (MCP_BRIDGE_MAX_CONCURRENT) " +
				"and 0 more wait for one of them to end. Next: call again when some of the calls have ended, and do more work in each run"},
		{"turned away by the image", "long", time.Hour, 20*time.Minute + 30*time.Second,
			"status: busy — the code was not run, since the call has waited in the queue for 20m30s, longer than one may (MCP_BRIDGE_QUEUE_TIMEOUT, " +
				"not counting up to 20m0s in which others wait for the engine or the image): " + preparing + " and 0 more wait for one of them to end. " +
				"Next: call again in a few minutes, since an image may take that long to come; `mcp-bridge doctor` says what is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := connect(t, pulling(t, c.pull))
				began := time.Now()
				p.run(0, `{"code":"`+c.first+`"}`, "")
				synctest.Wait()
				p.run(1, `{"code":"short"}`, `{"progressToken":"p"}`)
				synctest.Wait()
				p.run(2, `{"code":"short"}`, "")
				var said []string
				for answered := ""; answered != "1"; {
					f := receive(p)
					if f.Method != "" {
						said = append(said, f.Params.Message)
						continue
					}
					r := f.tool(t)
					switch answered = string(f.ID); {
					case answered == "1" && (r.Content[0].Text != c.want || time.Since(began) != c.after):
						t.Errorf("after %v\ngot  %s\nwant %s\nafter %v", time.Since(began), r.Content[0].Text, c.want, c.after)
					case answered == "2" && !strings.Contains(r.Content[0].Text, "the queue is full, so the code was not run: "+preparing+" and 1 more wait"):
						t.Errorf("what found no room was told %s", r.Content[0].Text)
					}
				}
				if all := strings.Join(said, "\n"); !strings.Contains(all, "waiting for one of 1 calls to end, 1 of which wait for the engine or the image") ||
					c.pull < time.Hour && !strings.Contains(all, "waiting for one of 1 runs to end") {
					t.Errorf("its progress was %q", said)
				}
			})
		})
	}
}
