package sandbox

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Int64
		b := newBacklog(10, 22, 27, &held)
		hold := func(b *backlog, n int64, want bool) {
			t.Helper()
			if got := b.hold(n); got != want {
				t.Errorf("holding %d more of %d: got %v", n, b.bytes, got)
			}
		}
		if !b.wait(t.Context()) {
			t.Error("an empty backlog has no room")
		}
		hold(b, 4, true)
		hold(b, 8, true)
		through := make(chan bool)
		go func() { through <- b.wait(t.Context()) }()
		synctest.Wait()
		select {
		case <-through:
			t.Error("there is room in a full backlog")
		default:
		}
		b.release(4)
		if !<-through {
			t.Error("there is no room after some was taken")
		}
		hold(b, 10, true)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if b.wait(ctx) {
			t.Error("room for a context that has ended")
		}
		hold(b, 5, false)
		hold(b, 4, true)
		hold(b, 1, false)
		others := []*backlog{newBacklog(10, 22, 27, &held), newBacklog(10, 22, 27, &held)}
		hold(others[0], 5, true)
		hold(others[1], 3, false) // of all runs
		hold(others[1], 2, true)  // its share, whatever others hold
		hold(others[1], 1, false)
		b.release(22)
		hold(others[1], 1, true)
		others[0].release(5)
		others[1].release(3)
		if b.bytes != 0 || held.Load() != 0 {
			t.Errorf("%d bytes are left, and %d of all", b.bytes, held.Load())
		}
	})
}

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
