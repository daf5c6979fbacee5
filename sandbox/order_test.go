package sandbox_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestOrderBehindThePing: a guest that has waited gets its run together with the ping. What becomes
// of one that isn't as it should be then: no run is lost, none is told of twice, and nothing is
// heard of a guest that hasn't answered.
func TestOrderBehindThePing(t *testing.T) {
	tests := []struct {
		name  string
		lent  lentTo
		again bool // another guest has the run
	}{
		{"it runs", runs, false},
		{"it dies before it has answered", diesSilent, true},
		{"it dies once it has answered", diesOnceItSaid, false},
		{"it talks before it answers", talksFirst, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
				call(t, s, "1ms")
				time.Sleep(time.Second)
				fl.set(func() { fl.lent = tt.lent })
				var calls, chunks atomic.Int64
				host := hostFunc(func(context.Context, sandbox.Call) (json.RawMessage, error) {
					calls.Add(1)
					return nil, nil
				})
				r, err := s.Run(t.Context(), sandbox.Request{Code: "1ms", Timeout: time.Minute,
					Output: func(sandbox.Chunk) { chunks.Add(1) }}, host)
				if err != nil || calls.Load() > 0 || strings.Contains(r.Stdout(), "early") {
					t.Errorf("got %+v, %v after %d calls", r, err, calls.Load())
				}
				died := tt.lent == diesOnceItSaid
				switch {
				case died && (r.Status != sandbox.StatusExit || !strings.Contains(r.Message,
					"before the code had finished")):
					t.Errorf("got %+v, want it said that the container has ended", r)
				case !died && (r.Status != sandbox.StatusOK || chunks.Load() != 1):
					t.Errorf("got %+v and heard %d pieces of output, want a success that was heard of once", r,
						chunks.Load())
				case tt.again != (r.Took.Start >= fl.startTime):
					t.Errorf("it had its guest after %v", r.Took.Start)
				}
			})
		})
	}
}

// TestLongOrder: what is too long to be sent with the ping comes after the answer to it.
func TestLongOrder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		fl.set(func() { fl.lent = diesSilent })
		long := strings.Repeat("0", 1<<20) + "1ms"
		if r := call(t, s, long); r.Took.Start < fl.startTime {
			t.Errorf("got %+v of a guest that did not answer", r.Took)
		}
		fl.set(func() { fl.lent = runs })
		time.Sleep(10 * time.Second) // one that did not answer delays the next start
		if r := call(t, s, long); r.Took.Start != 0 {
			t.Errorf("it had its guest after %v, though one was waiting", r.Took.Start)
		}
	})
}

// TestClockOfAnOrder: the code's time counts from when it was sent its order, though the answer to
// the ping came later.
func TestClockOfAnOrder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1ms")
		time.Sleep(time.Second)
		fl.set(func() { fl.answers = 400 * time.Millisecond })
		r, err := s.Run(t.Context(), sandbox.Request{Code: "1h", Timeout: time.Second}, hostFunc(echo))
		if err != nil || r.Status != sandbox.StatusTimeout || r.Took.Start != 0 || r.Took.Run < time.Second ||
			r.Took.Run > time.Second+cancelTakes {
			t.Errorf("got %+v, %v; want it stopped a second after the order", r, err)
		}
	})
}

// cancelTakes is how long a run goes on that was told to stop and doesn't listen.
const cancelTakes = time.Second + 100*time.Millisecond
