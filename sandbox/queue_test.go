package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestQueueErrors holds that a run that isn't admitted is told why, how many run and wait, and what
// to do.
func TestQueueErrors(t *testing.T) {
	short := func(c *sandbox.Config) { c.MaxRuns, c.Queue, c.QueueTimeout = 1, 1, 30*time.Second }
	for _, tt := range []struct {
		name, first string
		slow, after time.Duration // of the engine, and until the second call is answered
		want, hint  string        // empty: it ran
		progress    string
	}{
		{"it runs", "10s", 0, 10*time.Second + 300*time.Millisecond, "", "",
			"waiting for a run to end (1 at a time)"},
		{"behind a run", "50s", 0, 30 * time.Second,
			"it waited in the queue for 30s (MCP_BRIDGE_QUEUE_TIMEOUT): 1 under way " +
				"(MCP_BRIDGE_MAX_CONCURRENT), 0 waiting",
			"do more work in each run", "waiting for a run to end (1 at a time)"},
		{"behind the image and a run", "1s", 3 * time.Minute, 3*time.Minute + time.Second + 300*time.Millisecond,
			"", "", "waiting for a call to end (1 at a time, 1 of them waiting for the engine or the image)"},
		{"behind the image and a long run", "50s", 3 * time.Minute, 3*time.Minute + 30*time.Second,
			"which is longer than MCP_BRIDGE_QUEUE_TIMEOUT and the 20m0s for which others may prepare",
			"do more work in each run", "waiting for the engine or the image"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(c *sandbox.Config) { short(c); c.Standby = 0 },
				func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
					fl.set(func() { fl.slow = tt.slow })
					time.AfterFunc(time.Second, func() { fl.set(func() { fl.slow = 0 }) })
					var all sync.WaitGroup
					all.Go(func() {
						_, _ = s.Run(t.Context(), sandbox.Request{Code: tt.first, Timeout: time.Minute}, hostFunc(echo))
					})
					synctest.Wait()
					began := time.Now()
					all.Go(func() {
						var said strings.Builder
						var mu sync.Mutex
						_, err := s.Run(t.Context(), sandbox.Request{Code: "1ms", Timeout: time.Minute,
							Progress: func(line string) {
								mu.Lock()
								defer mu.Unlock()
								said.WriteString(line + "\n")
							}}, hostFunc(echo))
						var full *sandbox.QueueError
						switch {
						case tt.want == "" && err != nil, tt.want != "" && (!errors.As(err, &full) ||
							!strings.Contains(err.Error(), tt.want) || !strings.Contains(full.Hint(), tt.hint)):
							t.Errorf("got %v, want %q", err, tt.want)
						}
						if took := time.Since(began); took < tt.after || took > tt.after+time.Second {
							t.Errorf("answered after %v, want %v", took, tt.after)
						}
						mu.Lock()
						defer mu.Unlock()
						if !strings.Contains(said.String(), tt.progress) {
							t.Errorf("its progress was %q", said.String())
						}
					})
					synctest.Wait()
					queued := false
					_, err := s.Run(t.Context(), sandbox.Request{Code: "1ms", Timeout: time.Minute,
						Queued: func() { queued = true }}, hostFunc(echo))
					if err == nil || !strings.Contains(err.Error(), "the queue is full (MCP_BRIDGE_QUEUE), so the code "+
						"was not run: 1 under way") || !queued {
						t.Errorf("the third call got %v, and has come to the queue: %v", err, queued)
					}
					all.Wait()
				})
		})
	}
}

// TestCancelFreesThePlaceInTheQueue at once, and the call behind it keeps its own.
func TestCancelFreesThePlaceInTheQueue(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.MaxRuns, c.Queue = 1, 1 },
		func(t *testing.T, s *sandbox.Sandbox, _ *fleet) {
			var all sync.WaitGroup
			all.Go(func() { call(t, s, "10s") })
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			all.Go(func() {
				r, err := s.Run(ctx, sandbox.Request{Code: "1ms", Timeout: time.Minute}, hostFunc(echo))
				if err != nil || r.Status != sandbox.StatusCancelled {
					t.Errorf("the cancelled call got %+v, %v", r, err)
				}
			})
			synctest.Wait()
			cancel()
			synctest.Wait()
			r := call(t, s, "1ms")
			if r.Took.Queued < 9*time.Second || r.Took.Start > 200*time.Millisecond {
				t.Errorf("the call behind it took %+v, want it to wait for the first", r.Took)
			}
			all.Wait()
		})
}

// TestWaitForContainers holds that containers which an engine takes long to remove count among
// those that may be, and that what a run waits for that is told as the wait in the queue.
func TestWaitForContainers(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.MaxContainers, c.Standby = 1, 0 },
		func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			fl.set(func() { fl.removal = 25 * time.Second })
			left := 5 * time.Millisecond // alone, so that the answer comes first
			for _, queued := range []time.Duration{0, left + 25*time.Second} {
				r := call(t, s, "1ms")
				want := sandbox.Took{Queued: queued, Start: fl.startTime, Run: time.Millisecond,
					Total: queued + fl.startTime + time.Millisecond}
				if r.Took != want {
					t.Errorf("got %+v, want %+v", r.Took, want)
				}
			}
		})
}
