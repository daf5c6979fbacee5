package sandboxes

import (
	"errors"
	"testing"
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
		if !errors.As(err, &gone) || gone.Reason != "another caller, who has fewer, has begun one, and no more than "+
			"12 sandboxes in all are kept" {
			t.Errorf("got %v", err)
		}
	})
}
