package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// strict has guests that last end when they aren't pinged.
func strict(fl *fleet) { fl.set(func() { fl.strict = true }) }

// TestKeptWhileItWaits: a guest hears of the bridge while a call of it waits for its place among
// all runs, and while a tool call goes on that ignores its end.
func TestKeptWhileItWaits(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.MaxRuns, c.QueueTimeout = 1, time.Minute },
		func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			strict(fl)
			k := keep(t, s)
			var wg sync.WaitGroup
			wg.Go(func() { call(t, s, "25s") })
			synctest.Wait()
			begin := time.Now()
			fine(t, k, "1s")
			if waited := time.Since(begin); waited < 25*time.Second {
				t.Errorf("the call took %v: it didn't wait", waited)
			}
			wg.Wait()
			begin = time.Now()
			r, err := k.Run(t.Context(), sandbox.Request{Code: "1s calls", Timeout: time.Minute},
				hostFunc(func(context.Context, sandbox.Call) (json.RawMessage, error) {
					time.Sleep(time.Minute)
					return json.RawMessage("1"), nil
				}))
			if err != nil || r.Kept.State != sandbox.StateKept || time.Since(begin) < time.Minute {
				t.Errorf("got %+v, %v after %v", r, err, time.Since(begin))
			}
			fine(t, k, "1s")
			time.Sleep(time.Hour)
			fine(t, k, "1s")
		})
}

// TestKeptEndsWhileItWaits: a call that waits for its place is told at once when its guest ends.
func TestKeptEndsWhileItWaits(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.MaxRuns, c.QueueTimeout = 1, time.Minute },
		func(t *testing.T, s *sandbox.Sandbox, _ *fleet) {
			k := keep(t, s)
			var wg sync.WaitGroup
			wg.Go(func() { call(t, s, "30s") })
			synctest.Wait()
			begin := time.Now()
			time.AfterFunc(time.Second, func() { k.Close() })
			var ended *sandbox.EndedError
			_, err := k.Run(t.Context(), sandbox.Request{Code: "1s", Timeout: time.Minute}, nil)
			if !errors.As(err, &ended) || time.Since(begin) != time.Second {
				t.Errorf("got %v after %v", err, time.Since(begin))
			}
			wg.Wait()
		})
}

// TestKeptIsNoStandby: a guest that is to last isn't one that waits for a run, which stays for
// that.
func TestKeptIsNoStandby(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.MaxContainers, c.MaxRuns = 3, 2 },
		func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
			call(t, s, "1s")
			time.Sleep(10 * time.Second)
			if _, idle := fl.count(); idle != 1 {
				t.Fatalf("%d guests are warm", idle)
			}
			starts := fl.started()
			k := keep(t, s)
			if n := fl.started() - starts; n != 1 {
				t.Errorf("%d guests were started for one that lasts", n)
			}
			if alive, _ := fl.count(); alive != 2 {
				t.Errorf("%d containers are alive, want the warm one and the one that lasts", alive)
			}
			if r := call(t, s, "1s"); r.Took.Start != 0 {
				t.Errorf("a run waited %v for a guest, though one was warm", r.Took.Start)
			}
			k.Close()
			time.Sleep(10 * time.Second)
			if alive, _ := fl.count(); alive != 1 {
				t.Errorf("%d containers are alive, want the warm one", alive)
			}
		})
}

// TestKeptNotBegun: a call that is cancelled, or whose files can't be read, before the guest has
// heard of it leaves all as it was.
func TestKeptNotBegun(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		k := keep(t, s)
		fine(t, k, "1s")
		ctx, cancel := context.WithCancel(t.Context())
		r, err := k.Run(ctx, sandbox.Request{Code: "1s", Timeout: time.Minute,
			Files: func() ([]sandbox.Input, error) {
				cancel()
				return []sandbox.Input{{Name: "a", Size: 1, Data: strings.NewReader("a")}}, nil
			}}, nil)
		if err != nil || r.Status != sandbox.StatusCancelled || r.Kept.State != sandbox.StateKept ||
			r.Kept.Calls != 1 {
			t.Errorf("got %+v, %+v, %v", r, r.Kept, err)
		}
		half := io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), iotest.ErrReader(errors.New("worn out")))
		_, err = k.Run(t.Context(), sandbox.Request{Code: "1s", Timeout: time.Minute,
			Files: func() ([]sandbox.Input, error) {
				return []sandbox.Input{{Name: "a", Size: 2 << 20, Data: half}}, nil
			}}, nil)
		if err == nil || !strings.Contains(err.Error(), "worn out") {
			t.Errorf("got %v", err)
		}
		if fl.files != 0 {
			t.Errorf("the guest was sent %d pieces of files", fl.files)
		}
		fine(t, k, "1s")
	})
}

// TestKeptCancelledWithFiles: a call that is cancelled while its files are sent isn't run, and the
// guest clears them away.
func TestKeptCancelledWithFiles(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		k := keep(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		fl.set(func() {
			fl.onFile = func() {
				cancel()
				time.Sleep(time.Millisecond) // the host knows of it then
			}
		})
		begin := time.Now()
		r, err := k.Run(ctx, sandbox.Request{Code: "1s", Timeout: time.Minute,
			Files: func() ([]sandbox.Input, error) {
				return []sandbox.Input{{Name: "a", Size: 2 << 20, Data: bytes.NewReader(make([]byte, 2<<20))}}, nil
			}}, nil)
		if err != nil || r.Status != sandbox.StatusCancelled || r.Kept.State != sandbox.StateKept ||
			r.Stdout() != "" ||
			time.Since(begin) > time.Second {
			t.Errorf("got %+v, %+v, %v after %v", r, r.Kept, err, time.Since(begin))
		}
		if fl.files < 2 {
			t.Errorf("the guest was sent %d pieces of files", fl.files)
		}
		if got := fine(t, k, "1s"); got == "" {
			t.Error("the next call wasn't run")
		}
	})
}

// TestKeptOutOfMemory: what the guest can't say of its end, the engine does.
func TestKeptOutOfMemory(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		k := keep(t, s)
		fl.set(func() { fl.oom = true })
		r, err := k.Run(t.Context(), sandbox.Request{Code: "1s killed", Timeout: time.Minute}, nil)
		if err != nil || r.Status != sandbox.StatusMemoryLimit || r.Kept.State != sandbox.StateLost ||
			!strings.Contains(r.Kept.Reason, "out of memory") {
			t.Errorf("got %+v, %+v, %v", r, r.Kept, err)
		}
		<-k.Done()
	})
}

// TestKeptInFullQueue: a call of a guest that lasts is admitted where the queue is full of runs
// that wait for containers. Those are told who has them.
func TestKeptInFullQueue(t *testing.T) {
	bubble(t, func(c *sandbox.Config) { c.MaxContainers, c.MaxRuns, c.Standby, c.Queue = 2, 3, 0, 1 },
		func(t *testing.T, s *sandbox.Sandbox, _ *fleet) {
			k := keep(t, s)
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { call(t, s, "10s") })
				synctest.Wait()
			}
			var full *sandbox.QueueError
			_, err := s.Run(t.Context(), sandbox.Request{Code: "1s", Timeout: time.Minute}, nil)
			if !errors.As(err, &full) || !full.Full ||
				!strings.Contains(err.Error(), "1 of the containers held by sandboxes that last") {
				t.Errorf("got %v", err)
			}
			begin := time.Now()
			fine(t, k, "1s")
			if took := time.Since(begin); took != time.Second {
				t.Errorf("a call took %v", took)
			}
			wg.Wait()
		})
}

// TestKeptImageRemoved: a guest whose image was removed since it was found is started from another.
func TestKeptImageRemoved(t *testing.T) {
	bubble(t, nil, func(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
		call(t, s, "1s")
		fl.set(func() { fl.image, fl.removed = "second", true })
		fine(t, keep(t, s), "1s")
	})
}
