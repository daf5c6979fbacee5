package output

import (
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestLineOfWoken: the result of a sandbox that was woken says so, however the call ended.
func TestLineOfWoken(t *testing.T) {
	for _, tt := range []struct {
		s    Sandbox
		want string
	}{
		{Sandbox{State: sandbox.StateKept}, "sandbox k7f2: files are back, variables are not"},
		{Sandbox{State: sandbox.StateKept, Missing: "not saved: a.sock (no file)", NoWayBack: "polars"},
			"sandbox k7f2: files are back, variables are not; not saved: a.sock (no file); no way back from here: polars"},
		{Sandbox{State: sandbox.StateBefore}, "sandbox k7f2: variables as before this call; files as the code left them; " +
			"threads of earlier calls are gone; files are back, variables are not"},
		{Sandbox{State: sandbox.StateLost, Reason: "memory"}, `sandbox k7f2 has ended: memory; start again with "new"`},
	} {
		tt.s.ID, tt.s.Woken = "k7f2", true
		if got := tt.s.line(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
