package sandbox

import (
	"context"
	"sync"
	"sync/atomic"
)

// window counts bytes that are under way, and makes callers wait while there are too many. It is
// safe for concurrent use.
type window struct {
	limit int64

	mu    sync.Mutex
	bytes int64
	moved chan struct{} // closed when bytes has shrunk
}

// add counts n more bytes once there are less than the limit, which is passed by one addition at
// most. It returns false if ctx ends before.
func (w *window) add(ctx context.Context, n int64) bool {
	for {
		w.mu.Lock()
		if w.bytes < w.limit {
			w.bytes += n
			w.mu.Unlock()
			return ctx.Err() == nil || n > 0
		}
		moved := w.moved
		w.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

func (w *window) remove(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes -= n
	close(w.moved)
	w.moved = make(chan struct{})
}

// backlog counts the bytes of one run's results that wait with the host. While there are many it
// delays calls that would bring more. Those under way may still bring theirs, up to a bound.
type backlog struct {
	window
	most  int64         // that the run may hold
	held  *atomic.Int64 // by all runs
	total int64         // that all runs may hold, beside a share of each
	share int64
}

func newBacklog(limit, most, total int64, held *atomic.Int64) *backlog {
	b := &backlog{most: most, held: held, total: total, share: limit / 4}
	b.limit, b.moved = limit, make(chan struct{})
	return b
}

// hold counts n more bytes until they are released. It returns false, and counts nothing, if there
// are too many already. A run that takes nothing leaves every other its share: a result as long as
// can be sent.
func (b *backlog) hold(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes+n > b.most {
		return false
	}
	if b.held.Add(n) > b.total && b.bytes+n > b.share {
		b.held.Add(-n)
		return false
	}
	b.bytes += n
	return true
}

func (b *backlog) release(n int64) {
	b.held.Add(-n)
	b.remove(n)
}

// wait returns true once there is room, and false if ctx ends before.
func (b *backlog) wait(ctx context.Context) bool { return b.add(ctx, 0) }

// credit bounds the results that the guest's supervisor has been sent and the code has not taken:
// the supervisor holds all that, so that it still hears a ping or a cancel behind it.
type credit struct {
	window
	taken int64 // for the goroutine that reads frames
}

func newCredit(limit int64) *credit {
	c := &credit{}
	c.limit, c.moved = limit, make(chan struct{})
	return c
}

// spend counts size more bytes as sent once there is room. It returns false if ctx ends before.
func (c *credit) spend(ctx context.Context, size int64) bool { return c.add(ctx, size) }

// settle notes how many bytes have been taken in all. It is the guest's word: less than before, or
// more than was sent, says nothing.
func (c *credit) settle(taken int64) {
	c.mu.Lock()
	sent := c.taken + c.bytes
	c.mu.Unlock()
	if taken > c.taken && taken <= sent {
		c.remove(taken - c.taken)
		c.taken = taken
	}
}
