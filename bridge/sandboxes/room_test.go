package sandboxes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestFairRoom: where all callers have as many sandboxes as they may have together, one with none
// gets the place of the caller that has most, paused or not, until their numbers are nearly equal.
func TestFairRoom(t *testing.T) {
	within(t, func(t *testing.T, h *house) {
		var first []string
		for i := range 12 {
			owner := "a"
			if i >= 8 {
				owner = "b"
			}
			first = append(first, h.begin(owner))
			time.Sleep(time.Second)
		}
		for _, id := range first[:8] {
			if _, err := h.Pause("a", id); err != nil {
				t.Fatal(err)
			}
		}
		busy, err := h.Enter(t.Context(), "a", first[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		defer busy.Leave()
		var calls []*Call // each is under way, so that its caller has none of its own to give up
		for range 5 {
			c, err := h.Begin("c", Settings{})
			var full *FullError
			if len(calls) == 4 { // a, b and c have four each
				if !errors.As(err, &full) {
					t.Errorf("a fifth: got %v", err)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Guest(t.Context(), nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			calls = append(calls, c)
		}
		for _, c := range calls {
			c.Leave()
		}
		if a, b, c := len(h.List("a")), len(h.List("b")), len(h.List("c")); a != 4 || b != 4 || c != 4 {
			t.Errorf("they have %d, %d and %d", a, b, c)
		}
		var gone *GoneError
		_, err = h.call("a", first[1])
		if !errors.As(err, &gone) ||
			gone.Reason != "another caller, who has fewer, has begun one, and no more than "+
				"12 sandboxes in all are kept" {
			t.Errorf("got %v", err)
		}
	})
}

// TestRoomWhileSaving: a sandbox that is being saved has its place until its guest is gone, so that
// one begun after the other are no more guests than may be alive, except for the one that ends.
func TestRoomWhileSaving(t *testing.T) {
	saving(t, storeIn(t, t.TempDir()), func(t *testing.T, h *house) {
		for range PerOwner {
			time.Sleep(time.Second)
			h.filled("a", "x", nil, Settings{})
		}
		const slow = time.Minute
		h.locked(func() {
			for _, g := range h.made {
				g.packing = func() { time.Sleep(slow / 2) } // there are two pieces
			}
		})
		began := time.Now()
		most := int64(0)
		h.makes = func(context.Context) error {
			most = max(most, h.open.Load()+1)
			return nil
		}
		for range 3 {
			h.begin("a")
		}
		if took := time.Since(began); most != PerOwner+1 || took != 2*slow {
			t.Errorf("there were %d guests at a time, and it took %v", most, took)
		}
		h.begin("b") // who has none waits for nothing
		h.makes = nil
		if took := time.Since(began); took != 2*slow {
			t.Errorf("another caller waited %v", took-2*slow)
		}
		c, err := h.Begin("a", Settings{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Leave()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Guest(ctx, nil, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that doesn't wait so long: %v", err)
		}
		time.Sleep(2 * slow)
		synctest.Wait()
		h.locked(func() {
			for _, g := range h.made {
				g.packing = nil
			}
		})
	})
}
