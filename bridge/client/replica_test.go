package client

import (
	"strings"
	"testing"
)

// TestReplica: which names there are, and which ids are another's. What a header would carry is a
// valid name, whatever the id.
func TestReplica(t *testing.T) {
	for name, want := range map[Replica]bool{
		"": false, "a": true, "bridge-0": true, "bridge-7d9c5f6b8d-x2x4z": true, "-a": false, "a-": false,
		"A":   false,
		"a.b": false, "a b": false, Replica(strings.Repeat("a", 63)): true, Replica(strings.Repeat("a", 64)): false,
		"a\r\nx": false,
	} {
		if got := name.Valid(); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	for _, tc := range []struct {
		of   Replica
		id   string
		want Replica
	}{
		{"west", "k7f2.east", "east"}, {"west", "k7f2.west", ""}, {"west", "k7f2", ""}, {"west", "", ""},
		{"west", "k7f2.", ""}, {"west", ".east", "east"}, {"west", "k7f2.east\r\nSet-Cookie: x", ""},
		{"west", "a.west.east", "east"}, {"", "k7f2.east", ""}, {"west", "k7f2" + Replica("west").Suffix(), ""},
	} {
		if got := tc.of.Other(tc.id); got != tc.want {
			t.Errorf("%q of %q: %q, want %q", tc.id, tc.of, got, tc.want)
		}
	}
	if got := Replica("").Suffix(); got != "" {
		t.Errorf("the only bridge marks its ids with %q", got)
	}
}
