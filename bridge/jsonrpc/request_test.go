package jsonrpc

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestAfterwards(t *testing.T) {
	var done bool
	bubble(t, "", Options{Accept: func(r *Request) Handler {
		return func(context.Context) (any, error) {
			r.Afterwards(func() { done = true })
			return 0, nil
		}
	}}, func(t *testing.T, p *peer) {
		p.send(`{"id":0,"method":"m"}`)
		if done {
			t.Error("it was done although the answer is unread")
		}
		p.expect(`{"jsonrpc":"2.0","id":0,"result":0}`)
		if synctest.Wait(); !done {
			t.Error("it wasn't done")
		}
	})
}

// TestAfterwardsInABatch: it waits for the answer to the whole batch.
func TestAfterwardsInABatch(t *testing.T) {
	var done bool
	var release chan struct{}
	bubble(t, "", Options{Accept: func(r *Request) Handler {
		return func(context.Context) (any, error) {
			if string(r.ID) == "1" {
				r.Afterwards(func() { done = true })
				return 0, nil
			}
			<-release
			return 0, nil
		}
	}}, func(t *testing.T, p *peer) {
		release = make(chan struct{})
		p.send(`[{"id":1,"method":"m"},{"id":2,"method":"m"}]`)
		if done {
			t.Error("it was done although the batch is under way")
		}
		close(release)
		if synctest.Wait(); done {
			t.Error("it was done although the answer is unread")
		}
		p.expect(`[{"jsonrpc":"2.0","id":1,"result":0},{"jsonrpc":"2.0","id":2,"result":0}]`)
		if synctest.Wait(); !done {
			t.Error("it wasn't done")
		}
	})
}

// TestRefusedRequestsHoldNothing: those beyond the limit leave no goroutine behind that waits for
// their turn.
func TestRefusedRequestsHoldNothing(t *testing.T) {
	bubble(t, "", Options{MaxRequests: 2, Accept: func(r *Request) Handler {
		r.Order()
		return func(ctx context.Context) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
	}}, func(t *testing.T, p *peer) {
		p.send(`{"id":0,"method":"m"}`, `{"id":1,"method":"m"}`)
		before := goroutines()
		for i := range maxPosts / 2 {
			p.send(fmt.Sprintf(`{"id":%d,"method":"m"}`, 2+i))
		}
		if after := goroutines(); after > before {
			t.Errorf("%d goroutines were there, and %d are after requests that were refused", before, after)
		}
	})
}

// goroutines returns how many there are in the bubble.
func goroutines() int {
	buf := make([]byte, 1<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), ", synctest bubble ")
}

// TestRefusedInTime: Accept is told of a refusal, and may answer such a request itself.
func TestRefusedInTime(t *testing.T) {
	bubble(t, "", Options{MaxRequests: 1, Accept: func(r *Request) Handler {
		if r.Method == "ping" {
			r.Answer(r.Refused, nil)
			return nil
		}
		return echo(r)
	}}, func(_ *testing.T, p *peer) {
		p.send(`{"id":1,"method":"ping"}`, `{"id":1,"method":"hang"}`, `{"id":2,"method":"ping"}`,
			`{"id":1,"method":"ping"}`)
		p.expect(`{"jsonrpc":"2.0","id":1,"result":false}`, `{"jsonrpc":"2.0","id":2,"result":true}`,
			`{"jsonrpc":"2.0","id":null,"result":true}`)
	})
}

// counted is a result that counts how often it is encoded.
type counted struct{ n *atomic.Int64 }

func (c counted) MarshalJSON() ([]byte, error) {
	c.n.Add(1)
	return []byte("0"), nil
}

// TestUnreadAnswers: a peer that reads nothing has few answers encoded, and of its batches no more
// worked on than of single requests.
func TestUnreadAnswers(t *testing.T) {
	const many = 100
	for _, tt := range []struct {
		name, request string
		max           int // requests at a time
		busy          bool
	}{
		{"requests", `{"id":%d,"method":"m"}`, many, false},
		{"batches", `[{"id":%d,"method":"m"}]`, many, false},
		{"more batches", `[{"id":%d,"method":"m"}]`, many / 2, true},
	} {
		var n atomic.Int64
		bubble(t, tt.name, Options{MaxRequests: tt.max, Accept: func(*Request) Handler {
			return func(context.Context) (any, error) { return counted{&n}, nil }
		}}, func(t *testing.T, p *peer) {
			for i := range many {
				p.send(fmt.Sprintf(tt.request, i))
			}
			if got := n.Load(); got > maxEncoded+1 {
				t.Errorf("%d unread answers are encoded, want %d at most, and one that is written", got, maxEncoded)
			}
			busy := 0
			for range many {
				if line, err := p.out.ReadString('\n'); err != nil || strings.Contains(line, "which is the limit") {
					busy++
				}
			}
			if (busy > 0) != tt.busy {
				t.Errorf("%d were refused", busy)
			}
		})
	}
}

// TestLongBatch: what is beyond the limit of an answer to a batch is asked for again.
func TestLongBatch(t *testing.T) {
	half := strings.Repeat("x", maxBatchAnswer/2)
	bubble(t, "", Options{Accept: func(*Request) Handler {
		return func(context.Context) (any, error) { return half, nil }
	}}, func(t *testing.T, p *peer) {
		p.send(`[{"id":1,"method":"m"},{"id":2,"method":"m"}]`)
		line, _ := p.out.ReadBytes('\n')
		if len(line) > maxBatchAnswer || !bytes.Contains(line, []byte(`"result":"xxx`)) ||
			!bytes.Contains(line[len(half):], []byte("send this request again by itself")) {
			t.Errorf("an answer of %d bytes: %.100s … %s", len(line), line, line[len(line)-min(len(line), 300):])
		}
	})
}
