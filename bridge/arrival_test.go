package bridge

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// inOrder notes the runs in the order in which they come to its queue.
type inOrder struct{ came chan string }

func (q inOrder) Run(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
	q.came <- r.Code
	r.Queued()
	return sandbox.Result{Status: sandbox.StatusOK}, nil
}

// TestOrderOfArrival: calls that are sent in one go come to the queue in the order in which they
// were sent, also where some between them are refused before.
func TestOrderOfArrival(t *testing.T) {
	const calls = 60
	q := inOrder{make(chan string, calls)}
	b := build(t, func(c *Config) { c.Runner = q })
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
	close(q.came)
	var ran []string
	for code := range q.came {
		ran = append(ran, code)
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
