package detect_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestNoStorm: a hundred calls at once make one search, though no engine is there.
func TestNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &script{kind: refuses, delay: time.Second}
		d := over(t, a)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := d.PullImage(t.Context(), "x", nil); err == nil {
					t.Error("there is no engine")
				}
			})
		}
		wg.Wait()
		if n := a.asked.Load(); n != 1 {
			t.Errorf("the engine was asked %d times", n)
		}
		closed(t, d, a)
	})
}

// TestWaitersLeave: a search ends with its last waiter, and the next call searches again.
func TestWaitersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &script{kind: hangs}
		d := over(t, a)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if _, err := d.Facts(ctx); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(begin) > 100*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
		synctest.Wait()
		if n := a.open.Load(); n != 0 {
			t.Errorf("%d drivers are still open, without a caller", n)
		}
		a.become(rootless)
		if f, err := d.Facts(t.Context()); err != nil || f.Engine != "a" {
			t.Errorf("got %+v, %v", f, err)
		}
		closed(t, d, a)
	})
}

// TestNothingIsChosenWithoutACaller: an answer that was there when the last waiter left chooses
// nothing.
func TestNothingIsChosenWithoutACaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &script{kind: hangs}, &script{kind: rootless}
		d := over(t, a, b)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := d.Facts(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if _, err := d.Orphans(t.Context(), runtime.Owner{}); err == nil || b.open.Load() != 0 {
			t.Errorf("got %v, and %d drivers of b are open", err, b.open.Load())
		}
		closed(t, d, a, b)
	})
}

func TestClosedWhileSearching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &script{kind: hangs}, &script{kind: rootful}
		d := over(t, a, b)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := d.Facts(t.Context()); err == nil {
				t.Error("a closed driver has chosen")
			}
		})
		synctest.Wait()
		closed(t, d, a, b)
		wg.Wait()
		if _, err := d.Facts(t.Context()); err == nil {
			t.Error("a closed driver has chosen")
		}
	})
}
