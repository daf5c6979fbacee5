package sandbox

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestClock plays pauses in made-up time and checks when the code's own time is up.
func TestClock(t *testing.T) {
	const limit, idle = 10 * time.Second, 30 * time.Second
	tests := []struct {
		name string
		play func(*Clock)
		want time.Duration
	}{
		{"no pause", func(*Clock) {}, limit},
		{"a pause", func(c *Clock) { resume := c.Stop(); time.Sleep(5 * time.Second); resume() },
			limit + 5*time.Second},
		{"resumed twice", func(c *Clock) { resume := c.Stop(); time.Sleep(5 * time.Second); resume(); resume() },
			limit + 5*time.Second},
		{"two at once", func(c *Clock) {
			a, b := c.Stop(), c.Stop()
			time.Sleep(2 * time.Second)
			a()
			time.Sleep(3 * time.Second)
			b()
		}, limit + 5*time.Second},
		{"one after the other", func(c *Clock) {
			for range 3 {
				time.Sleep(time.Second)
				resume := c.Stop()
				time.Sleep(4 * time.Second)
				resume()
			}
		}, limit + 12*time.Second},
		{"as long as it may", func(c *Clock) { resume := c.Stop(); time.Sleep(idle); resume() }, limit + idle},
		{"for ever", func(c *Clock) { c.Stop() }, limit + idle},
		{"again when it may no more", func(c *Clock) {
			resume := c.Stop()
			time.Sleep(2 * idle / 3)
			resume()
			c.Stop()
		}, limit + idle},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				over := make(chan time.Duration, 2)
				c := &Clock{}
				c.start(limit, idle, func() { over <- time.Since(begin) })
				tt.play(c)
				if got := <-over; got != tt.want {
					t.Errorf("the time was up after %v, want %v", got, tt.want)
				}
				time.Sleep(time.Hour)
				if len(over) > 0 {
					t.Error("it was up twice")
				}
			})
		})
	}
}

// TestLateTimer: the timer of a pause that has just ended says nothing.
func TestLateTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Clock{}
		c.start(10*time.Second, 30*time.Second, func() { t.Error("the time is up") })
		resume := c.Stop()
		late := c.period
		resume()
		c.fire(late)
		c.end()
	})
}
