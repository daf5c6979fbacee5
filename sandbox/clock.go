package sandbox

import (
	"context"
	"sync"
	"time"
)

// clock measures the code's own time. It stands still while a tool call waits for something that the code is not to pay for,
// such as a server that is just being started; how long it may stand still in all is bounded too.
type clock struct {
	mu      sync.Mutex
	left    time.Duration // of the code's own time, when the clock last started or stopped
	idle    time.Duration // how long it may still stand still
	since   time.Time     // when it last started or stopped
	off     int           // how many wait off the clock
	timer   *time.Timer
	expired func()
	ended   bool
}

// startClock calls expired, once, from a goroutine of its own, when the time is up.
func startClock(limit, idle time.Duration, expired func()) *clock {
	c := &clock{left: limit, idle: idle, since: time.Now(), expired: expired}
	c.timer = time.AfterFunc(limit, c.fire)
	return c
}

func (c *clock) fire() {
	c.mu.Lock()
	// Stood still too long: what is left of the code's own time begins to run, whoever still waits.
	if c.off > 0 && c.idle > 0 {
		c.idle = 0
		c.since = time.Now()
		c.timer.Reset(c.left)
		c.mu.Unlock()
		return
	}
	over := !c.ended
	c.ended = true
	c.mu.Unlock()
	if over {
		c.expired()
	}
}

// stop ends the clock; expired isn't called any more once stop has returned, unless it is running already.
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
		now := time.Now()
		c.left -= now.Sub(c.since)
		c.since = now
		c.timer.Reset(c.idle)
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.off--
		if c.off == 0 && c.idle > 0 && !c.ended {
			now := time.Now()
			c.idle = max(0, c.idle-now.Sub(c.since))
			c.since = now
			c.timer.Reset(c.left)
		}
	})
}

type clockKey struct{}

// OffClock stops the clock of the run that ctx, a context of Host.Call, belongs to, until resume is called: for waiting that
// the code is not to pay for. It does nothing with another context. Resume may be called more than once.
func OffClock(ctx context.Context) (resume func()) {
	c, ok := ctx.Value(clockKey{}).(*clock)
	if !ok {
		return func() {}
	}
	return c.pause()
}
