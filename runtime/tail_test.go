package runtime

import (
	"slices"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	tail := &Tail{Limit: 10}
	for _, tt := range []struct{ write, want string }{
		{"", ""},
		{" abc\n", "abc"},
		{"defgh", "abc\ndefgh"},
		{"ij", "bc\ndefghij"},
		{strings.Repeat("x", 25) + "0123456789", "0123456789"},
		{"ä23456789", "ä23456789"[:10]},
		{"é123456789", "\uFFFD123456789"},
	} {
		if n, err := tail.Write([]byte(tt.write)); n != len(tt.write) || err != nil {
			t.Errorf("%q: got %d, %v", tt.write, n, err)
		}
		if got := tail.String(); got != tt.want {
			t.Errorf("after %q: got %q, want %q", tt.write, got, tt.want)
		}
	}
	if c := cap(tail.buf); c > 4*tail.Limit {
		t.Errorf("it holds %d bytes", c)
	}
}

func TestRedacted(t *testing.T) {
	for _, tt := range []struct{ endpoint, want string }{
		{"unix:///run/podman/podman.sock", "unix:///run/podman/podman.sock"},
		{"ssh://user:secret@host/socket", "ssh://user:xxxxx@host/socket"},
		{"tcp://:secret@host:1", "tcp://:xxxxx@host:1"},
		{"ssh://user:secret@host:port\x7f", ""},
		{"", ""},
	} {
		if got := Redacted(tt.endpoint); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.endpoint, got, tt.want)
		}
	}
}

// TestLines: lines end with either character, are trimmed and bounded; what has no end waits.
func TestLines(t *testing.T) {
	var got []string
	l := &Lines{To: func(line string) { got = append(got, line) }}
	for _, p := range []string{"one\ntw", "o\rthree \n\n", strings.Repeat("x", maxLine), "yz\nlast"} {
		if n, err := l.Write([]byte(p)); n != len(p) || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	}
	want := []string{"one", "two", "three", strings.Repeat("x", maxLine)}
	if !slices.Equal(got, want) {
		t.Errorf("got %.60q, want %.60q", got, want)
	}
	if l.Flush(); !slices.Equal(got, append(want, "last")) {
		t.Errorf("got %.60q, want the last line too", got)
	}
}
