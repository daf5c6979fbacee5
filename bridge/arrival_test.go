package bridge

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestOrderOfArrival: calls that are sent in one go run in the order in which they were sent, also where some between them are
// refused before they come to the queue.
func TestOrderOfArrival(t *testing.T) {
	const calls = 60
	var mu sync.Mutex
	var ran []string
	b := build(t, func(c *Config) {
		c.MaxConcurrent = 1
		c.Runner = fakeRunner{run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, r.Code)
			return sandbox.Result{Status: sandbox.StatusOK}, nil
		}}
	})
	p := connect(t, b)
	want := 0
	for i := range calls {
		if i%7 == 3 {
			p.run(i, `{"code":5}`, "")
			continue
		}
		p.run(i, fmt.Sprintf(`{"code":"%d"}`, i), "")
		want++
	}
	for range calls {
		p.next()
	}
	if len(ran) != want {
		t.Fatalf("%d of %d ran", len(ran), want)
	}
	last := -1
	for _, code := range ran {
		i, err := strconv.Atoi(code)
		if err != nil || i < last {
			t.Fatalf("they ran in the order %v", ran)
		}
		last = i
	}
}
