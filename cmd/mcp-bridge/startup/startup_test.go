package startup

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestHeld: the collector is held back from this package's initialization on, unless the user says
// how it works.
func TestHeld(t *testing.T) {
	now := debug.SetGCPercent(usual)
	defer debug.SetGCPercent(now)
	if want := os.Getenv("GOGC") == ""; held != want || want && now != percent {
		t.Errorf("held %v, at %d %%; want %v, at %d", held, now, want, percent)
	}
}
