package sandbox

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog(10)
		if !b.wait(t.Context()) {
			t.Error("an empty backlog has no room")
		}
		b.add(4)
		b.add(8)
		through := make(chan bool)
		go func() { through <- b.wait(t.Context()) }()
		synctest.Wait()
		select {
		case <-through:
			t.Error("there is room in a full backlog")
		default:
		}
		b.add(-4)
		if !<-through {
			t.Error("there is no room after some was taken")
		}
		b.add(10)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if b.wait(ctx) {
			t.Error("room for a context that has ended")
		}
		b.add(-18)
		if b.bytes != 0 {
			t.Errorf("%d bytes are left", b.bytes)
		}
	})
}
