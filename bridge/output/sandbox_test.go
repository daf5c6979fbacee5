package output

import (
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestLineOfWoken: the result of a sandbox that was woken says so, however the call ended.
func TestLineOfWoken(t *testing.T) {
	for _, tt := range []struct {
		s    sandbox.KeptState
		gone string
		want string
	}{
		{sandbox.KeptState{State: sandbox.StateKept}, "", "sandbox k7f2: files are back, variables are not"},
		{sandbox.KeptState{State: sandbox.StateKept, NoWayBack: "polars"}, "not saved: a.sock (no file)",
			"sandbox k7f2: files are back, variables are not; not saved: a.sock (no file); no way back from " +
				"here: polars"},
		{sandbox.KeptState{State: sandbox.StateBefore}, "", "sandbox k7f2: variables as before this call; files " +
			"as the code left them; threads and processes of earlier calls are gone; files are back, variables " +
			"are not"},
		{sandbox.KeptState{State: sandbox.StateLost, Reason: "memory"}, "",
			`sandbox k7f2 has ended: memory; start again with "new"`},
	} {
		s := Sandbox{ID: "k7f2", KeptState: tt.s, Woken: true, Missing: tt.gone}
		if got := s.line(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
