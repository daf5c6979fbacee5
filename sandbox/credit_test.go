package sandbox

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCredit(100)
		for _, size := range []int64{60, 60} { // passed by one frame
			if !c.spend(t.Context(), size) {
				t.Fatal("no credit within the limit")
			}
		}
		done := make(chan bool, 1)
		go func() { done <- c.spend(t.Context(), 1) }()
		for _, taken := range []int64{0, -5, 121, 20} { // nothing, nonsense, more than was sent, and not enough
			c.settle(taken)
			synctest.Wait()
			select {
			case <-done:
				t.Fatalf("there was credit after settle(%d)", taken)
			default:
			}
		}
		c.settle(21)
		if !<-done {
			t.Error("no credit once there was room")
		}
		c.settle(121)
		c.settle(20) // less than before says nothing
		ctx, cancel := context.WithCancel(t.Context())
		if !c.spend(ctx, 1000) {
			t.Error("no credit for a frame that is larger than the limit")
		}
		go func() { done <- c.spend(ctx, 1) }()
		synctest.Wait()
		cancel()
		if <-done {
			t.Error("credit after the context's end")
		}
	})
}
