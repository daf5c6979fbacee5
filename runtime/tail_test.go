package runtime

import (
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
