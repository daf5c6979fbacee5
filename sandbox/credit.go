package sandbox

import (
	"context"
	"sync"
)

// credit bounds what the guest's supervisor has been sent of results and the code has not taken yet: it must hold all that, so
// that it still hears a ping or a cancel behind it. It is safe for concurrent use.
type credit struct {
	limit int64

	mu          sync.Mutex
	sent, taken int64
	moved       chan struct{} // closed when taken has grown
}

func newCredit(limit int64) *credit { return &credit{limit: limit, moved: make(chan struct{})} }

// spend counts size more bytes as sent once less than the limit is under way, so that it is passed by one frame at the most. It
// returns false if ctx ends before.
func (c *credit) spend(ctx context.Context, size int64) bool {
	for {
		c.mu.Lock()
		if c.sent-c.taken < c.limit {
			c.sent += size
			c.mu.Unlock()
			return true
		}
		moved := c.moved
		c.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

// settle says how many bytes have been taken in all. It is the guest's word: less than before, or more than was sent, says nothing.
func (c *credit) settle(taken int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if taken > c.taken && taken <= c.sent {
		c.taken = taken
		close(c.moved)
		c.moved = make(chan struct{})
	}
}
