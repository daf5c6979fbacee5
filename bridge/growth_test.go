package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestNothingGrows: a bridge that has answered two thousand calls more has no more goroutines than
// before, and no more memory: calls of
// tools that are there and that aren't, cancelled calls, and more output and files than are kept.
func TestNothingGrows(t *testing.T) {
	text := strings.Repeat("a line of output\n", DefaultOutput/8)
	b := running(t, func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error) {
		if r.Code == "hang" {
			<-ctx.Done()
			return sandbox.Result{Status: sandbox.StatusCancelled}, nil
		}
		for i, tool := range []string{"me", "list-issues", "none"} {
			if _, err := h.Call(ctx, sandbox.Call{Run: r.ID, ID: fmt.Sprint(i), Provider: "github", Tool: tool,
				Input: json.RawMessage(`{}`)}); (err != nil) != (tool == "none") {
				t.Errorf("%s: %v", tool, err)
			}
		}
		return sandbox.Result{Status: sandbox.StatusOK, Output: []sandbox.Chunk{{Stream: "stdout",
			Text: strings.Clone(text)}},
			Artifacts: []sandbox.Artifact{{Name: "f", Mime: "text/plain", Data: make([]byte, 10_000)}}}, nil
	})
	p := connect(t, b)
	p.send(`{"jsonrpc":"2.0","id":"ready","method":"ping"}`)
	p.next()
	goroutines := goruntime.NumGoroutine()
	calls := func(from, to int) {
		for i := from; i < to; i++ {
			if i%5 == 0 {
				p.run(i, `{"code":"hang"}`, "")
				p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i)
				continue
			}
			p.run(i, `{"code":"x"}`, `{"progressToken":1}`)
			for string(p.next().ID) != fmt.Sprint(i) { // progress comes first
			}
		}
	}
	calls(0, 500)
	quiet(t, goroutines)
	heap := heapOf()
	calls(500, 2500)
	quiet(t, goroutines)
	const most = 256 << 10
	if more := heapOf() - heap; more > most {
		t.Errorf("%d bytes more in the heap after 2000 calls", more)
	}
}

// quiet waits until there are no more goroutines than there were.
func quiet(t *testing.T, were int) {
	t.Helper()
	n := goruntime.NumGoroutine()
	for deadline := time.Now().Add(30 * time.Second); n > were &&
		time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		n = goruntime.NumGoroutine()
	}
	if n > were {
		t.Errorf("%d goroutines, %d before", n, were)
	}
}

// heapOf returns the size of the heap after a collection, the least of a few.
func heapOf() int64 {
	least := int64(math.MaxInt64)
	for range 5 {
		var m goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&m)
		least = min(least, int64(m.HeapAlloc))
	}
	return least
}
