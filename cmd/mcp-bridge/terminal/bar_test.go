package terminal

import (
	"strings"
	"testing"
)

func TestBar(t *testing.T) {
	show := func(columns int) string {
		var b strings.Builder
		bar := &Bar{s: Screen{w: &b, columns: columns}}
		bar.Show(0, "fetching: 1 of 58 MB")
		bar.Show(50, "fetching: 29 of 58 MB")
		bar.Show(100, "unpacking \x1b[2J")
		bar.End()
		return b.String()
	}
	if got, want := show(0), "fetching\nunpacking \\x1b[2J\n"; got != want {
		t.Errorf("without a terminal: %q, want %q", got, want)
	}
	const clear = "\r\x1b[K"
	want := clear + "[                        ]   0% fetch" + clear +
		"[============            ]  50% fetch" + clear +
		"[========================] 100% unpac" + clear
	if got := show(38); got != want {
		t.Errorf("on a terminal: %q, want %q", got, want)
	}
}
