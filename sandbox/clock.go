package sandbox

import (
	"sync"
	"time"
)

// clock measures the code's own time. It stands still while a tool call waits for something that
// the code is not to pay for, such as a server that is just being started; how long it may stand
// still in all is bounded too.
type clock struct {
	mu      sync.Mutex
	left    time.Duration // of the code's own time, when the clock last started or stopped
	idle    time.Duration // how long it may still stand still
	since   time.Time     // when it last started or stopped
	off     int           // how many wait off the clock
	timer   *time.Timer   // of the period that runs now
	period  int           // counts periods: a timer of an earlier one that fires late says nothing
	expired func()
	ended   bool
}

// startClock calls expired, once, from a goroutine of its own, when the time is up.
func startClock(limit, idle time.Duration, expired func()) *clock {
	c := &clock{left: limit, idle: idle, expired: expired}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin(limit)
	return c
}

// begin begins a period of at most d. It is called with mu held.
func (c *clock) begin(d time.Duration) {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.since = time.Now()
	c.period++
	period := c.period
	c.timer = time.AfterFunc(d, func() { c.fire(period) })
}

func (c *clock) fire(period int) {
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

// stop ends the clock; expired isn't called any more once stop has returned, unless it is running
// already.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.timer.Stop()
}

// pause stops the clock until resume is called. Pauses of concurrent calls overlap.
func (c *clock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// A Clock lets the Host of one run stop the clock of its code. The zero value is ready for use, and
// that of a run without a Clock is nil. It is safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	running *clock
}

// Stop stops the clock until resume is called: for waiting that the code is not to pay for. It does
// nothing before the code has begun. Resume may be called more than once.
func (c *Clock) Stop() (resume func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	running := c.running
	c.mu.Unlock()
	if running == nil {
		return func() {}
	}
	return running.pause()
}

// set notes which clock runs.
func (c *Clock) set(running *clock) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = running
}
