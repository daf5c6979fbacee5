package sandboxes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestRunFails: a call that can't take place leaves the sandbox as it was, and one whose guest has
// ended meanwhile is told why.
func TestRunFails(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		full := &sandbox.QueueError{Full: true}
		var err error
		h.run = func(context.Context, sandbox.Request) (sandbox.Result, error) { return sandbox.Result{}, err }
		id := h.begin("a")
		err = full
		if _, got := h.call("a", id); !errors.Is(got, full) {
			t.Errorf("got %v", got)
		}
		err = nil
		if r, err := h.call("a", id); err != nil || r.Kept.State != sandbox.StateKept {
			t.Errorf("the call after it: %+v, %v", r, err)
		}
		err = &sandbox.EndedError{Reason: "it ran out of memory"}
		for range 2 {
			_, got := h.call("a", id)
			var gone *GoneError
			if !errors.As(got, &gone) || gone.Reason != "it ran out of memory" {
				t.Errorf("got %v", got)
			}
		}
	})
}

// TestNoneEndsForNothing: a sandbox doesn't end for one that comes to nothing.
func TestNoneEndsForNothing(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		for range PerOwner {
			h.begin("a")
		}
		h.keep = errors.New("there is no engine")
		c, err := h.Begin("a", Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(t.Context(), sandbox.Request{}, nil); !errors.Is(err, h.keep) {
			t.Errorf("got %v", err)
		}
		c.Leave()
		if n := len(h.List("a")); n != PerOwner {
			t.Errorf("%d are left, want %d", n, PerOwner)
		}
		h.keep = nil
		h.begin("a")
		if n := len(h.List("a")); n != PerOwner {
			t.Errorf("with one more there are %d, want %d", n, PerOwner)
		}
	})
}

// TestAllInUseMeanwhile: where each sandbox has come into use while another was made, that has no
// place.
func TestAllInUseMeanwhile(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		var ids []string
		for range PerOwner {
			ids = append(ids, h.begin("a"))
		}
		h.making = make(chan struct{})
		c, err := h.Begin("a", Settings{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := c.Run(t.Context(), sandbox.Request{}, nil)
			ended <- err
		}()
		<-h.making
		for _, id := range ids {
			other, err := h.Enter(t.Context(), "a", id, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Leave()
		}
		h.making <- struct{}{}
		if err := <-ended; !errors.As(err, new(*FullError)) {
			t.Errorf("got %v", err)
		}
		c.Leave()
		if n := len(h.List("a")); n != PerOwner {
			t.Errorf("%d are left, want %d", n, PerOwner)
		}
	})
}

// TestEndedWhileKept: a sandbox that ends while its guest is made, by its caller, with it or with
// the bridge, has the guest closed, which Close waits for.
func TestEndedWhileKept(t *testing.T) {
	for name, end := range map[string]func(h *house, id string){
		"ended":  func(h *house, id string) { h.End("a", id, "you have ended it") },
		"gone":   func(h *house, _ string) { h.EndAll("a") },
		"closed": func(h *house, _ string) { go h.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, h *house) {
				h.making, h.closing = make(chan struct{}), make(chan struct{})
				c, err := h.Begin("a", Settings{})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() {
					_, err := c.Run(t.Context(), sandbox.Request{}, nil)
					c.Leave()
					ended <- err
				}()
				<-h.making
				end(h, c.ID())
				synctest.Wait()
				h.making <- struct{}{}
				if err := <-ended; !errors.As(err, new(*GoneError)) {
					t.Errorf("got %v", err)
				}
				closed := make(chan struct{})
				go func() {
					h.Close()
					close(closed)
				}()
				<-h.closing
				synctest.Wait()
				select {
				case <-closed:
					t.Error("Close didn't wait for the guest")
				default:
				}
				h.closing <- struct{}{}
				<-closed
			})
		})
	}
}

// TestSlowEnd: a guest that takes long to end holds up no other sandbox.
func TestSlowEnd(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		h.closing = make(chan struct{})
		id := h.begin("a")
		h.closing = nil
		other := h.begin("a")
		slow := h.made[0].closing
		h.End("a", id, "you have ended it")
		<-slow
		if _, err := h.call("a", other); err != nil {
			t.Error(err)
		}
		h.begin("b")
		slow <- struct{}{}
	})
}

// TestTombstonesOfOthers: a caller whose sandboxes end all the time doesn't have those of others
// forgotten.
func TestTombstonesOfOthers(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		mine := h.begin("a")
		h.End("a", mine, "x")
		for range maxTombstones + 10 {
			h.End("b", h.begin("b"), "y")
			synctest.Wait()
		}
		_, err := h.Info("a", mine)
		var gone *GoneError
		if !errors.As(err, &gone) || gone.Reason != "x" || len(h.ended.of) != maxTombstones {
			t.Errorf("got %v with %d tombstones", err, len(h.ended.of))
		}
	})
}

// TestSessionsOfAnOwner: sessions of one owner have a shared sandbox each, which ends with the
// session; the owner's others live on, and each of its sessions may use all of them.
func TestSessionsOfAnOwner(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		shared := func(session string) string {
			c, err := h.Shared(t.Context(), "alice", session, Settings{Principal: "alice"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Leave()
			if _, err := c.Run(t.Context(), sandbox.Request{}, nil); err != nil {
				t.Fatal(err)
			}
			return c.ID()
		}
		own, first, second := h.begin("alice"), shared("1"), shared("2")
		if first == second || shared("1") != first || h.made[1].request.Principal != "alice" {
			t.Errorf("the sandboxes are %s and %s", first, second)
		}
		if _, err := h.call("alice", first); err != nil {
			t.Errorf("by its id: %v", err)
		}
		if _, err := h.call("bob", first); !errors.As(err, new(*GoneError)) {
			t.Errorf("by another: %v", err)
		}
		h.EndShared("1")
		for id, there := range map[string]bool{own: true, first: false, second: true} {
			if _, err := h.call("alice", id); (err == nil) != there {
				t.Errorf("%s: %v, want it there: %v", id, err, there)
			}
		}
		h.EndShared("3")
	})
}

// TestOneSandbox: errors of a bridge that keeps one are sentences.
func TestOneSandbox(t *testing.T) {
	for _, tc := range []struct {
		err  FullError
		want string
	}{
		{FullError{Most: 1}, "there is 1 sandbox of other callers, which is the limit"},
		{FullError{Most: 3}, "there are 3 sandboxes of other callers, which is the limit"},
		{FullError{Own: 1, Most: 1}, "there is 1 sandbox, which is the limit, and calls are under way in yours"},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
