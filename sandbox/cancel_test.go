package sandbox

import (
	"context"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// TestToolCancel: a frame cancels the one call that it names, says nothing of one that is over, and
// is counted where there isn't one.
func TestToolCancel(t *testing.T) {
	n := &calls{ids: map[string]bool{"1": true, "2": true, "3": true}}
	begun, ends := map[string]context.Context{}, map[string]func(){}
	for id := range n.ids {
		begun[id], ends[id] = n.underWay.begin(t.Context(), entrypoint.FromGuest{CallID: id})
	}
	ends["1"]()
	unknown := 0
	for _, id := range []string{"1", "2", "2", "", "77"} {
		if !n.cancel(id) {
			unknown++
		}
	}
	if begun["2"].Err() == nil || begun["3"].Err() != nil {
		t.Errorf("call 2 has %v, call 3 has %v", begun["2"].Err(), begun["3"].Err())
	}
	if unknown != 2 {
		t.Errorf("%d frames were counted, want 2", unknown)
	}
	ends["2"]()
	ends["3"]()
	if len(n.underWay.calls) != 0 {
		t.Errorf("%d calls are still under way", len(n.underWay.calls))
	}
}
