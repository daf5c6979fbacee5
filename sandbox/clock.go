package sandbox

import (
	"sync"
	"time"
)

// A Clock measures the time of one run's code, and lets the run's Host stop it: for waiting that
// the code is not to pay for, such as a server that is just being started. How long it may stand
// still in all is bounded too. The zero value is ready for use, and that of a run without a Clock
// is nil. It is safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	left    time.Duration // of the code's own time, when the clock last started or stopped
	idle    time.Duration // how long it may still stand still
	since   time.Time     // when it last started or stopped
	off     int           // how many wait off the clock
	timer   *time.Timer   // of the period that runs now; nil before the code has begun
	period  int           // counts periods: a timer of an earlier one that fires late says nothing
	expired func()
	ended   bool
}

// start calls expired, once, from a goroutine of its own, when the time is up.
func (c *Clock) start(limit, idle time.Duration, expired func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.idle, c.expired = limit, idle, expired
	c.begin(limit)
}

// begin begins a period of at most d. It is called with mu held.
func (c *Clock) begin(d time.Duration) {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.since = time.Now()
	c.period++
	period := c.period
	c.timer = time.AfterFunc(d, func() { c.fire(period) })
}

func (c *Clock) fire(period int) {
	c.mu.Lock()
	if c.ended || period != c.period {
		c.mu.Unlock()
		return
	}
	// Stood still too long: what is left of the code's own time begins to run.
	if c.off > 0 && c.idle > 0 {
		c.idle = 0
		c.begin(c.left)
		c.mu.Unlock()
		return
	}
	c.ended = true
	c.mu.Unlock()
	c.expired()
}

// end ends the clock; expired isn't called any more once end has returned, unless it is running
// already.
func (c *Clock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.timer.Stop()
}

// Stop stops the clock until resume is called, which may be done more than once. It does nothing
// before the code has begun. Stops of concurrent calls overlap.
func (c *Clock) Stop() (resume func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil {
		return func() {}
	}
	c.off++
	if c.off == 1 && c.idle > 0 && !c.ended {
		c.left -= time.Since(c.since)
		c.begin(c.idle)
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.off--
		if c.off == 0 && c.idle > 0 && !c.ended {
			c.idle = max(0, c.idle-time.Since(c.since))
			c.begin(c.left)
		}
	})
}
