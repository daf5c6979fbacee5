package main

import (
	"runtime/debug"
	"testing"
)

// TestBoundGarbage: garbage has a bound, and the user's own is left alone. What comes of it shows
// TestHostileSuite.
func TestBoundGarbage(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	for _, tt := range []struct {
		setting string
		want    int64
	}{
		{"", softMemory},
		{"4GiB", 4 << 30},
		{"off", 4 << 30},
	} {
		t.Setenv("GOMEMLIMIT", tt.setting)
		debug.SetMemoryLimit(4 << 30) // as the runtime would, at its start
		boundGarbage()
		if got := debug.SetMemoryLimit(-1); got != tt.want {
			t.Errorf("GOMEMLIMIT=%q: got %d, want %d", tt.setting, got, tt.want)
		}
	}
}
