package text

import (
	"errors"
	"slices"
	"testing"
)

func TestSizesForReaders(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1234: "1,234 bytes", 12345: "12 kB",
		1 << 20: "1.0 MB", 64 << 20: "67.1 MB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "0 tools", 1: "1 tool", 2: "2 tools"} {
		if got := Plural(n, "tool"); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := Count(1234567); got != "1,234,567" {
		t.Error(got)
	}
}

type hinted struct{ error }

func (hinted) Hint() string { return "wait" }

func TestNext(t *testing.T) {
	bad := errors.New("it is dark")
	for _, tc := range []struct {
		err  error
		want []any
	}{
		{bad, []any{"err", bad}},
		{hinted{bad}, []any{"err", hinted{bad}, "next", "wait"}},
	} {
		if got := Next(tc.err); !slices.Equal(got, tc.want) {
			t.Errorf("%v: %v, want %v", tc.err, got, tc.want)
		}
	}
}
