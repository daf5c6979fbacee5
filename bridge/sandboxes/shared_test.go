package sandboxes

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestShared: calls that share a sandbox get the same one, also when they come at the same time,
// and are told when it is another.
func TestShared(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		enter := func(owner string) (id, before string) {
			c, err := h.Shared(t.Context(), owner, owner, Settings{}, nil)
			if err != nil {
				t.Error(err)
				return "", ""
			}
			defer c.Leave()
			if _, err := c.Run(t.Context(), sandbox.Request{}, nil); err != nil {
				t.Error(err)
			}
			return c.ID(), c.Before
		}
		found := make(chan string, 3)
		for range 3 {
			go func() {
				id, _ := enter("a")
				found <- id
			}()
		}
		id, second, third := <-found, <-found, <-found
		if second != id || third != id || len(h.made) != 1 {
			t.Errorf("%d sandboxes were made for one session", len(h.made))
		}
		if other, _ := enter("b"); other == id {
			t.Error("two sessions share a sandbox")
		}
		time.Sleep(31 * time.Minute)
		next, before := enter("a")
		if next == id || before != "sandbox "+id+" has ended: it was not used for 30 min" {
			t.Errorf("after its end: %s, %q", next, before)
		}
		h.EndAll("a")
		if len(h.List("a")) != 0 || len(h.List("b")) != 0 && h.List("b")[0].ID == next {
			t.Error("a caller that is gone has sandboxes")
		}
	})
}

// TestNotMade: a sandbox whose first call has no guest is forgotten, and what waits tries again.
func TestNotMade(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		h.keep = errors.New("there is no engine")
		c, err := h.Begin("a", Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(t.Context(), sandbox.Request{}, nil); !errors.Is(err, h.keep) {
			t.Errorf("got %v", err)
		}
		c.Leave()
		c.Leave()
		if _, err := h.Info("a", c.ID()); !errors.As(err, new(*GoneError)) {
			t.Errorf("it is there: %v", err)
		}
		first, err := h.Shared(t.Context(), "a", "a", Settings{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan error, 1)
		go func() {
			c, err := h.Shared(t.Context(), "a", "a", Settings{}, nil)
			if err == nil {
				_, err = c.Run(t.Context(), sandbox.Request{}, nil)
				c.Leave()
			}
			second <- err
		}()
		synctest.Wait()
		_, _ = first.Run(t.Context(), sandbox.Request{}, nil)
		h.keep = nil
		first.Leave()
		if err := <-second; err != nil {
			t.Errorf("the call behind it: %v", err)
		}
	})
}

// TestEndedWhileMade: a guest that is made for a caller who is gone is closed.
func TestEndedWhileMade(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		c, err := h.Begin("a", Settings{})
		if err != nil {
			t.Fatal(err)
		}
		h.EndAll("a")
		if _, err := c.Run(t.Context(), sandbox.Request{}, nil); !errors.As(err, new(*GoneError)) {
			t.Errorf("got %v", err)
		}
		c.Leave()
	})
}

// TestTombstones: no more than 1,000 are kept, for a day.
func TestTombstones(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		first := h.begin("a")
		h.End("a", first, "x")
		time.Sleep(23 * time.Hour)
		reason := func(id string) string {
			_, err := h.Info("a", id)
			var gone *GoneError
			if !errors.As(err, &gone) {
				t.Fatal(err)
			}
			return gone.Reason
		}
		if reason(first) != "x" {
			t.Error("its reason is forgotten after 23 hours")
		}
		time.Sleep(time.Hour)
		if reason(first) != "" {
			t.Error("its reason is known after 24 hours")
		}
		var last string
		for range maxTombstones + 10 {
			last = h.begin("a")
			h.End("a", last, "y")
			synctest.Wait()
		}
		if len(h.ended.of) != maxTombstones || len(h.ended.ids) != maxTombstones || reason(last) != "y" {
			t.Errorf("%d tombstones", len(h.ended.of))
		}
	})
}

// TestKeepRequest: the guest hears of what was chosen, and lives a call longer than the sandbox.
func TestKeepRequest(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		c, err := h.Begin("a", Settings{Variables: map[string]string{"X": "1"}})
		if err != nil {
			t.Fatal(err)
		}
		env := &sandbox.Environment{Name: "data"}
		if _, made := c.Environment(); made {
			t.Error("it has a guest before its first call")
		}
		_, err = c.Run(t.Context(), sandbox.Request{Environment: env}, nil)
		c.Leave()
		r := h.made[0].request
		if err != nil || r.Environment != env || r.MaxAge != 8*time.Hour+time.Minute || r.Variables["X"] != "1" {
			t.Errorf("%v, %+v", err, r)
		}
		if i, _ := h.Info("a", c.ID()); i.Environment != env {
			t.Errorf("its environment is %v", i.Environment)
		}
	})
}
