package streamable

import "sync"

// calls counts those that run, and takes no more once it is told to stop. It is safe for concurrent
// use.
type calls struct {
	drained chan struct{} // closed when none run any more after stop

	mu      sync.Mutex
	stopped bool
	running int // without subscriptions
}

// begin counts one more, unless no more are taken.
func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return false
	}
	c.running++
	return true
}

// finish is begin's counterpart.
func (c *calls) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.stopped && c.running == 0 {
		close(c.drained)
	}
}

// stop has no more taken, and returns how many run. It may be called more than once.
func (c *calls) stop() (running int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped && c.running == 0 {
		close(c.drained)
	}
	c.stopped = true
	return c.running
}

// count returns how many run, and whether no more are taken.
func (c *calls) count() (running int, stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running, c.stopped
}
