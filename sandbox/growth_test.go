package sandbox_test

import (
	"context"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestNothingGrows: after a thousand calls more, some of which failed or were cancelled, there are
// no more goroutines than before, and no more memory than the fleet's own notes take.
func TestNothingGrows(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby, c.StandbyIdle = 2, time.Hour },
		func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			calls := func(n int) (goroutines int, heap int64) {
				for i := range n {
					fl.set(func() { fl.lent = lentTo(i / 10 % 4) })
					if i%7 == 0 {
						cancelledCall(t, s)
					} else {
						anyCall(t, s)
					}
					time.Sleep(time.Duration(i%3) * 100 * time.Millisecond)
				}
				fl.set(func() { fl.lent = runs })
				time.Sleep(2 * time.Minute) // those that failed are forgotten, and one waits again
				synctest.Wait()
				return goroutinesLeft(), heapInUse()
			}
			before, heapBefore := calls(300)
			after, heapAfter := calls(1000)
			if after > before {
				t.Errorf("%d goroutines, %d before", after, before)
			}
			if more := heapAfter - heapBefore; more > 512<<10 {
				t.Errorf("%d bytes more in the heap after 1000 calls", more)
			}
		})
}

// goroutinesLeft returns how many goroutines there are in the caller's bubble, of which Go says so
// beside their state. Others are not counted: a finalizer of an earlier test may run.
func goroutinesLeft() int {
	buf := make([]byte, 1<<20)
	return strings.Count(string(buf[:goruntime.Stack(buf, true)]), ", synctest bubble ")
}

// anyCall is a call that may end in any way.
func anyCall(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	if _, err := s.Run(t.Context(), sandbox.Request{Code: "1ms", Timeout: time.Minute},
		hostFunc(echo)); err != nil {
		t.Error(err)
	}
}

// cancelledCall is one that is given up while its code runs.
func cancelledCall(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Run(ctx, sandbox.Request{Code: "1s", Timeout: time.Minute}, hostFunc(echo)); err != nil {
		t.Error(err)
	}
}

// heapInUse is what is left after a collection.
func heapInUse() int64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.GC() // what the first one has finalized
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestNothingGrowsOfKept: a thousand guests that last, ended in all the ways in which they end,
// leave no container, goroutine or megabyte.
func TestNothingGrowsOfKept(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.Standby = 0 }, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		churn := func(n int) (goroutines int, heap int64) {
			for i := range n {
				k := keep(t, s)
				fine(t, k, "1ms")
				switch i % 4 {
				case 0: // it dies between calls
					fl.set(func() {
						for _, kill := range fl.alive {
							kill()
						}
					})
					<-k.Done()
				case 1: // a call is under way when it ends
					over := make(chan struct{})
					go func() {
						defer close(over)
						_, _ = k.Run(t.Context(), sandbox.Request{Code: "1s", Timeout: time.Minute}, hostFunc(echo))
					}()
					time.Sleep(100 * time.Millisecond)
					_ = k.Close()
					<-over
				case 2: // and is cancelled
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					_, _ = k.Run(ctx, sandbox.Request{Code: "1s", Timeout: time.Minute}, hostFunc(echo))
					cancel()
				}
				_ = k.Close()
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if alive, _ := fl.count(); alive != 0 {
				t.Errorf("%d containers are left", alive)
			}
			return goroutinesLeft(), heapInUse()
		}
		before, heapBefore := churn(100)
		after, heapAfter := churn(1000)
		if after > before {
			t.Errorf("%d goroutines, %d before", after, before)
		}
		if more := heapAfter - heapBefore; more > 1<<20 {
			t.Errorf("%d bytes more in the heap after 1000 guests", more)
		}
	})
}
