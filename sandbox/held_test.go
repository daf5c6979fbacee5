package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// together answers calls once all of them are under way, with the same bytes, which are no JSON:
// the guest is told so, and nothing has to be encoded.
type together struct {
	calls  sync.WaitGroup
	answer []byte
}

func (h *together) Call(context.Context, Call) (json.RawMessage, error) {
	h.calls.Done()
	h.calls.Wait()
	return h.answer, nil
}

// TestHeldResults: results that calls under way bring for code that takes none are held up to a
// bound. What is beyond is dropped, and its call says so; once the code takes them, there is room
// again.
func TestHeldResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each, fit = 100 << 20, maxUnsent / (100 << 20)
		host := &together{answer: make([]byte, each)}
		s := &Sandbox{cfg: Config{MaxCalls: 1000}, log: slog.New(slog.DiscardHandler)}
		n := newSession(s, Request{ID: "r", Providers: []entrypoint.Provider{{Name: "shop"}}}, host)
		var in bytes.Buffer
		n.calls.stdin = entrypoint.NewWriter(&in, 0)
		said := func() map[string]int {
			codes := map[string]int{}
			for line := range bytes.Lines(in.Bytes()) {
				var f entrypoint.ToolResult
				if err := json.Unmarshal(line, &f); err != nil || f.Error == nil {
					t.Fatalf("%s: %v", line, err)
				}
				codes[f.Error.Code]++
			}
			in.Reset()
			return codes
		}
		for round := range 2 {
			n.calls.untaken.spend(t.Context(), maxUntaken) // the guest has all that it may have
			host.calls.Add(fit + 3)
			for id := range fit + 3 {
				n.calls.begin(t.Context(), entrypoint.FromGuest{CallID: strconv.Itoa(round*100 + id), Provider: "shop",
					Tool: "big"})
			}
			synctest.Wait()
			if held := s.resultsHeld.Load(); held != fit*each || n.calls.unsent.bytes != held {
				t.Errorf("%d bytes are held, and %d of the run; want %d", held, n.calls.unsent.bytes, fit*each)
			}
			n.calls.untaken.settle(n.calls.untaken.taken + n.calls.untaken.bytes)
			n.wg.Wait()
			if got := said(); got[entrypoint.CodeInternal] != fit || got[entrypoint.CodeOutputLimit] != 3 {
				t.Errorf("got %v, want %d results that can't be sent, and 3 that were dropped", got, fit)
			}
			if held := s.resultsHeld.Load(); held != 0 {
				t.Errorf("%d bytes are held in the end", held)
			}
		}
	})
}
