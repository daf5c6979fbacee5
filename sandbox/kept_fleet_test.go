package sandbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// keep returns a guest that lasts for eight hours.
func keep(t *testing.T, s *sandbox.Sandbox) *sandbox.Kept {
	t.Helper()
	k, err := s.Keep(t.Context(), sandbox.KeepRequest{MaxAge: 8 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// fine runs code in k, and returns what it printed.
func fine(t *testing.T, k *sandbox.Kept, code string) string {
	t.Helper()
	r, err := k.Run(t.Context(), sandbox.Request{Code: code, Timeout: time.Minute}, hostFunc(echo))
	if err != nil || r.Status != sandbox.StatusOK || r.Kept == nil || r.Kept.State != sandbox.StateKept {
		t.Errorf("got %+v, %v", r, err)
	}
	return r.Stdout()
}

// TestKeptLasts: calls of hours apart have the same container, whose engine ends it after its age,
// and which has heard of the bridge meanwhile; runs have others.
func TestKeptLasts(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		k := keep(t, s)
		first := fine(t, k, "1s")
		for range 3 {
			time.Sleep(time.Hour)
			if got := fine(t, k, "1s"); got != first {
				t.Errorf("ran in %q, want %q", got, first)
			}
		}
		if r := call(t, s, "1s"); r.Stdout() == first {
			t.Error("a run had the container of the sandbox")
		}
		if age := fl.specs[0].MaxAge; age < 8*time.Hour || age > 8*time.Hour+time.Minute {
			t.Errorf("its age is %v", age)
		}
		if n := fl.pinged(); n < 3*60*60/10 {
			t.Errorf("it was pinged %d times in three hours", n)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		if _, ok := k.Ended(); !ok {
			t.Error("it has not ended")
		}
	})
}

// TestKeptCounts: guests that last are containers; their calls are runs while they run, and wait
// for no container.
func TestKeptCounts(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.MaxContainers, c.MaxRuns, c.Standby = 3, 2, 0 },
		func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			a, b := keep(t, s), keep(t, s)
			var wg sync.WaitGroup
			wg.Go(func() { call(t, s, "10s") })
			time.Sleep(time.Second)
			wg.Go(func() { call(t, s, "1s") }) // waits for the one container
			time.Sleep(time.Second)
			begin := time.Now()
			fine(t, a, "1s")
			if took := time.Since(begin); took != time.Second {
				t.Errorf("a call took %v: it waited for a container", took)
			}
			wg.Go(func() { fine(t, a, "20s") })
			synctest.Wait()
			begin = time.Now()
			fine(t, b, "1s") // both runs are taken for some seconds more
			if took := time.Since(begin); took < 2*time.Second {
				t.Errorf("a call took %v: it was no run", took)
			}
			wg.Wait()
			a.Close()
			time.Sleep(time.Second)
			keep(t, s) // Close of the Sandbox ends it, and b
			if alive, _ := fl.count(); alive != 2 {
				t.Errorf("%d containers are alive, want 2", alive)
			}
		})
}

// TestKeptOrder: calls of one guest run one after the other, as they came; one that is cancelled
// while it waits doesn't run.
func TestKeptOrder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		k := keep(t, s)
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b", "c", "d"} {
			wg.Go(func() {
				fine(t, k, "10s "+name)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		r, err := k.Run(ctx, sandbox.Request{Code: "10s never", Timeout: time.Minute}, hostFunc(echo))
		if err != nil || r.Status != sandbox.StatusCancelled || r.Stdout() != "" ||
			r.Kept.State != sandbox.StateKept {
			t.Errorf("got %+v, %v", r, err)
		}
		wg.Wait()
		if got := strings.Join(order, ""); got != "abcd" {
			t.Errorf("ran as %s", got)
		}
	})
}

// TestKeptDies: a guest that ends, or doesn't answer, between calls or in one, has ended, and says
// so to those that wait.
func TestKeptDies(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		ended := func(k *sandbox.Kept) {
			t.Helper()
			<-k.Done()
			var e *sandbox.EndedError
			if _, err := k.Run(t.Context(), sandbox.Request{Code: "1s", Timeout: time.Minute}, nil); !errors.As(err,
				&e) ||
				e.Reason == "" {
				t.Errorf("got %v", err)
			}
			if _, err := k.Undo(t.Context()); !errors.As(err, &e) {
				t.Errorf("got %v", err)
			}
		}
		kill := func() {
			fl.set(func() {
				for _, kill := range fl.alive {
					kill()
				}
			})
		}
		k := keep(t, s)
		kill()
		ended(k)
		k = keep(t, s)
		fl.set(func() { fl.deaf = true })
		ended(k)
		fl.set(func() { fl.deaf = false })
		k = keep(t, s)
		var wg sync.WaitGroup
		wg.Go(func() {
			r, err := k.Run(t.Context(), sandbox.Request{Code: "1h", Timeout: time.Minute}, hostFunc(echo))
			if err != nil || r.Kept.State != sandbox.StateLost {
				t.Errorf("got %+v, %v", r, err)
			}
		})
		time.Sleep(10 * time.Second)
		wg.Go(func() { ended(k) })
		time.Sleep(time.Second)
		kill()
		wg.Wait()
		k = keep(t, s)
		wg.Go(func() {
			r, err := k.Run(t.Context(), sandbox.Request{Code: "1h", Timeout: time.Minute}, hostFunc(echo))
			if err != nil || r.Status != sandbox.StatusCancelled || !strings.Contains(r.Message, "it was closed") {
				t.Errorf("got %+v, %v", r, err)
			}
		})
		time.Sleep(10 * time.Second)
		k.Close()
		wg.Wait()
	})
}

// TestKeptNotStarted: what is wrong with the engine is said by Keep, and its place is free again.
func TestKeptNotStarted(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.MaxContainers = 2; c.Standby = 0 },
		func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			fl.set(func() { fl.broken = func() error { return errors.New("out of order") } })
			for range 3 {
				if _, err := s.Keep(t.Context(), sandbox.KeepRequest{MaxAge: time.Hour}); err == nil ||
					!strings.Contains(err.Error(), "out of order") {
					t.Errorf("got %v", err)
				}
			}
			fl.set(func() { fl.broken = nil })
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := s.Keep(ctx, sandbox.KeepRequest{MaxAge: time.Hour}); !errors.Is(err,
				context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Second)
			fine(t, keep(t, s), "1s")
		})
}

// TestKeptLeaves: a guest that ends between calls has its own last words as the reason.
func TestKeptLeaves(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, _ *fleet) {
		k := keep(t, s)
		fine(t, k, "1s leaves")
		<-k.Done()
		if why, _ := k.Ended(); why != "it has had enough" {
			t.Errorf("it has ended: %q", why)
		}
	})
}
