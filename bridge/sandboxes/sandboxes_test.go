package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func TestIDs(t *testing.T) {
	s := newIDs(false)
	seen := map[string]bool{}
	form := regexp.MustCompile(`^[a-z][a-z2-9]{3}$`)
	for range 100_000 {
		id := s.next()
		if seen[id] || !form.MatchString(id) {
			t.Fatalf("id %q: seen before %v", id, seen[id])
		}
		seen[id] = true
	}
	s.n = short - 1
	long := regexp.MustCompile(`^[a-z][a-z2-9]{5}$`)
	s.next()
	for range 100_000 {
		id := s.next()
		if seen[id] || !long.MatchString(id) {
			t.Fatalf("id %q: seen before %v", id, seen[id])
		}
		seen[id] = true
	}
	if other := newIDs(false); other.next() == (&ids{key: s.key}).next() {
		t.Error("two processes begin with the same id") // one in 786,432
	}
}

// TestEnds: a sandbox ends when it was not used, or is old, and the next call is told why.
func TestEnds(t *testing.T) {
	for _, tc := range []struct {
		name  string
		until func(h *house, id string)
		want  string // empty: it is there
	}{
		{"in use", func(h *house, id string) {
			for range 10 {
				time.Sleep(29 * time.Minute)
				if _, err := h.call("a", id); err != nil {
					h.t.Fatal(err)
				}
			}
			time.Sleep(29 * time.Minute)
		}, ""},
		{"idle", func(*house, string) { time.Sleep(31 * time.Minute) }, "it was not used for 30 min"},
		{"old", func(h *house, id string) {
			for range 24 {
				time.Sleep(20 * time.Minute)
				_, _ = h.call("a", id) // the last one comes too late
			}
		}, "it was 8 h old, which is the most"},
		{"dead", func(h *house, _ string) {
			h.made[0].dies("its container died: out of memory")
			synctest.Wait()
		}, "its container died: out of memory"},
		{"ended by the caller", func(h *house, id string) { h.End("a", id, "you have ended it") },
			"you have ended it"},
		{"paused", func(h *house, id string) {
			_, _ = h.Pause("a", id)
			time.Sleep(7 * time.Hour)
		}, ""},
		{"paused too long", func(h *house, id string) {
			_, _ = h.Update("a", id, func(s *Settings) { s.AutoDelete = 2 * time.Minute })
			_, _ = h.Pause("a", id)
			time.Sleep(3 * time.Minute)
		}, "it was paused for 2 min, its auto_delete_seconds"},
		{"a new pause counts from its own beginning", func(h *house, id string) {
			_, _ = h.Update("a", id, func(s *Settings) { s.AutoDelete = 2 * time.Minute })
			for range 5 {
				_, _ = h.Pause("a", id)
				time.Sleep(90 * time.Second)
				_, _ = h.Resume("a", id)
			}
		}, ""},
		{"active for its timeout", func(h *house, id string) {
			_, _ = h.Update("a", id, func(s *Settings) { s.Timeout = 10 * time.Minute })
			time.Sleep(6 * time.Minute)
			_, _ = h.Pause("a", id)
			time.Sleep(time.Hour)
			_, _ = h.Resume("a", id)
			time.Sleep(3 * time.Minute)
			if _, err := h.call("a", id); err != nil {
				h.t.Error("before its timeout:", err)
			}
			time.Sleep(2 * time.Minute)
		}, "it was active for 10 min, its timeout_seconds"},
		{"evicted", func(h *house, _ string) {
			for range PerOwner {
				time.Sleep(time.Second)
				h.begin("a")
			}
		}, "another one was begun, and no more than 8 sandboxes of a caller are kept"},
		{"evicted for all", func(h *house, _ string) {
			for range 6 {
				h.begin("b")
			}
			for range 5 {
				h.begin("c")
			}
			time.Sleep(time.Second)
			h.begin("a")
		}, "another one was begun, and no more than 12 sandboxes in all are kept"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			within(t, func(t *testing.T, h *house) {
				id := h.begin("a")
				tc.until(h, id)
				synctest.Wait()
				runs := h.made[0].calls.Load()
				_, err := h.call("a", id)
				var gone *GoneError
				switch {
				case tc.want == "" && err != nil:
					t.Error(err)
				case tc.want != "" && (!errors.As(err, &gone) || gone.Reason != tc.want):
					t.Errorf("got %v, want the reason %q", err, tc.want)
				case tc.want != "" && h.made[0].calls.Load() != runs:
					t.Error("code was run all the same")
				}
			})
		})
	}
}

// TestLine: calls of one sandbox run in their order, one after the other; beyond eight that wait,
// they are refused. Calls of another one don't wait for them.
func TestLine(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		free := make(chan struct{})
		var order []string
		under := 0
		var refused atomic.Int64
		h.run = func(_ context.Context, r sandbox.Request) (sandbox.Result, error) {
			if r.ID == "" {
				return sandbox.Result{}, nil
			}
			if under++; under > 1 {
				t.Error("two calls at a time")
			}
			<-free
			under--
			order = append(order, r.ID)
			return sandbox.Result{}, nil
		}
		id, other := h.begin("a"), h.begin("a")
		for i := range 1 + maxWait {
			go func() {
				c, err := h.Enter(t.Context(), "a", id, nil)
				if i > 0 && errors.As(err, new(*GoneError)) {
					refused.Add(1)
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Leave()
				_, _ = c.Run(t.Context(), sandbox.Request{ID: fmt.Sprint(i)}, nil)
			}()
			synctest.Wait()
		}
		if _, err := h.call("a", other); err != nil {
			t.Error(err)
		}
		_, err := h.call("a", id)
		var busy *BusyError
		if !errors.As(err, &busy) || !strings.Contains(err.Error(), "8 calls wait for it") {
			t.Errorf("the tenth call: %v", err)
		}
		time.Sleep(9 * time.Hour) // a call that runs is not ended for its age; those behind it are told
		if n := h.open.Load(); n != 1 {
			t.Errorf("%d sandboxes are left, of one that is in use and one that is not", n)
		}
		free <- struct{}{}
		synctest.Wait()
		if len(order) != 1 || order[0] != "0" || refused.Load() != maxWait {
			t.Errorf("%v have run, %d were refused", order, refused.Load())
		}
	})
}

// TestOrder: all that wait run, in their order, except for one that has given up.
func TestOrder(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		free := make(chan struct{})
		var order []string
		h.run = func(_ context.Context, r sandbox.Request) (sandbox.Result, error) {
			if r.ID != "" {
				<-free
				order = append(order, r.ID)
			}
			return sandbox.Result{}, nil
		}
		id := h.begin("a")
		ctx, cancel := context.WithCancelCause(t.Context())
		impatient := errors.New("the client has cancelled")
		for i := range 5 {
			go func() {
				of := t.Context()
				if i == 2 {
					of = ctx
				}
				c, err := h.Enter(of, "a", id, nil)
				if i == 2 {
					if !errors.Is(err, impatient) {
						t.Errorf("the call that was cancelled: %v", err)
					}
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Leave()
				_, _ = c.Run(t.Context(), sandbox.Request{ID: fmt.Sprint(i)}, nil)
			}()
			synctest.Wait()
		}
		cancel(impatient)
		synctest.Wait()
		for range 4 {
			free <- struct{}{}
			synctest.Wait()
		}
		if got := strings.Join(order, ""); got != "0134" {
			t.Errorf("the order was %s, want 0134", got)
		}
	})
}

// TestBusyIsKept: what is in use is not evicted, and if all are, nothing is begun.
func TestBusyIsKept(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		var calls []*Call
		for range PerOwner {
			c, err := h.Begin("a", Settings{})
			if err == nil {
				_, err = c.Run(t.Context(), sandbox.Request{}, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, c)
		}
		_, err := h.Begin("a", Settings{})
		var full *FullError
		if !errors.As(err, &full) || !strings.Contains(err.Error(), "you have 8 sandboxes") {
			t.Errorf("the ninth: %v", err)
		}
		if _, err := h.Begin("b", Settings{}); err != nil {
			t.Errorf("another caller's: %v", err)
		}
		calls[5].Leave()
		c, err := h.Begin("a", Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Begin("a", Settings{}); !errors.As(err, &full) {
			t.Errorf("one that would take the same place: %v", err)
		}
		if _, err := h.Info("a", calls[5].ID()); err != nil {
			t.Errorf("the one that was not in use, before there is another: %v", err)
		}
		if _, err := c.Run(t.Context(), sandbox.Request{}, nil); err != nil {
			t.Error(err)
		}
		if _, err := h.Enter(t.Context(), "a", calls[5].ID(), nil); !errors.As(err, new(*GoneError)) {
			t.Errorf("the one that was not in use: %v", err)
		}
	})
}

// TestForeign: another caller's sandbox is as unknown as one that never was, alive or ended.
func TestForeign(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		id := h.begin("a")
		mine := h.begin("b")
		look := func(what string) {
			t.Helper()
			_, enter := h.call("b", id)
			_, info := h.Info("b", id)
			_, pause := h.Pause("b", id)
			_, resume := h.Resume("b", id)
			_, update := h.Update("b", id, func(s *Settings) { s.Name = "stolen" })
			for name, err := range map[string]error{"Enter": enter, "Info": info, "Pause": pause, "Resume": resume,
				"Update": update} {
				var gone *GoneError
				if !errors.As(err, &gone) || gone.Reason != "" || gone.ID != id {
					t.Errorf("%s of another's sandbox, %s: %v", name, what, err)
				}
				_, never := h.Info("b", "zzzz")
				if strings.ReplaceAll(err.Error(), id, "zzzz") != never.Error() {
					t.Errorf("%s tells it from one that never was: %v", name, err)
				}
				if others := gone.Others(); !strings.Contains(others, mine) || strings.Contains(others, id) {
					t.Errorf("%s lists %s", name, others)
				}
			}
			if h.End("b", id, "stolen") {
				t.Errorf("another has ended it, %s", what)
			}
		}
		look("alive")
		if i, err := h.Info("a", id); err != nil || i.Settings.Name != "" || i.Calls != 1 {
			t.Errorf("its owner sees %+v, %v", i, err)
		}
		h.End("a", id, "you have ended it")
		look("ended")
	})
}

// TestEndWhileRunning: what is ended in the middle of a call is lost, and so it is told to the call
// and to those that wait.
func TestEndWhileRunning(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		h.run = func(_ context.Context, r sandbox.Request) (sandbox.Result, error) {
			if r.ID == "long" {
				<-h.made[0].done
				return sandbox.Result{Status: sandbox.StatusEngine, Message: "It was ended: " + sandbox.Closed + ".",
					Kept: &sandbox.KeptState{State: sandbox.StateLost, Reason: "closed"}}, nil
			}
			return sandbox.Result{}, nil
		}
		id := h.begin("a")
		results := make(chan string, 2)
		for _, name := range []string{"long", "behind"} {
			go func() {
				c, err := h.Enter(t.Context(), "a", id, nil)
				if err != nil {
					results <- err.Error()
					return
				}
				defer c.Leave()
				res, err := c.Run(t.Context(), sandbox.Request{ID: name}, nil)
				if err != nil {
					t.Error(err)
				}
				results <- fmt.Sprint(res.Kept.State, ": ", res.Kept.Reason, "; ", res.Message)
			}()
			synctest.Wait()
		}
		h.End("a", id, "you have ended it")
		synctest.Wait()
		got := []string{<-results, <-results}
		for _, want := range []string{"lost: you have ended it; It was ended: you have ended it.",
			`sandbox "` + id + `" has ended: you have ended it`} {
			if got[0] != want && got[1] != want {
				t.Errorf("got %q, want one to be %q", got, want)
			}
		}
	})
}

// TestEndsWithItsCall: the result of a call that ends with the bridge, or passes the sandbox's age,
// says that the sandbox has ended.
func TestEndsWithItsCall(t *testing.T) {
	for want, during := range map[string]func(stop func()){
		"the bridge has ended":              func(stop func()) { stop() },
		"it was 8 h old, which is the most": func(func()) { time.Sleep(9 * time.Hour) },
		"":                                  func(func()) { time.Sleep(time.Hour) }, // which isn't idle time
	} {
		t.Run(want, func(t *testing.T) {
			within(t, func(t *testing.T, h *house) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				h.EndsWith(ctx)
				id := h.begin("a")
				h.made[0].run = func(context.Context, sandbox.Request) (sandbox.Result, error) {
					during(stop)
					return sandbox.Result{}, nil
				}
				res, err := h.call("a", id)
				if err != nil || res.Kept.Reason != want || (want != "") != (res.Kept.State == sandbox.StateLost) {
					t.Errorf("got %+v, %v", res.Kept, err)
				}
			})
		})
	}
}

// TestEvicted: the call that begins one too many has the id of what has ended for it, which is no
// paused one as long as there is another.
func TestEvicted(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		var own []string
		for range PerOwner {
			own = append(own, h.begin("a"))
			time.Sleep(time.Second)
		}
		for _, id := range own[:PerOwner-1] {
			if _, err := h.Pause("a", id); err != nil {
				t.Error(err)
			}
		}
		for _, want := range []string{own[PerOwner-1], own[0]} {
			c, err := h.Begin("a", Settings{})
			if err == nil {
				_, err = c.Run(t.Context(), sandbox.Request{}, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Leave()
			if c.Ended != want {
				t.Errorf("%q has ended for it, want %q", c.Ended, want)
			}
			if _, err := h.Pause("a", c.ID()); err != nil {
				t.Error(err)
			}
		}
	})
}
