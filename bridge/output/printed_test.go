package output

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func TestPrinted(t *testing.T) {
	out, errs := streams([]sandbox.Chunk{
		{Stream: "stdout", Text: "aé"}, {Stream: "stderr", Text: "w1"}, {Stream: "stdout", Lost: 10}, {Stream: "stderr"}, {Stream: "stdout", Text: "z"}, {Stream: "stderr", Text: "w2\n"},
	})
	d, begin := joined(out, errs)
	if d.size() != 28 || begin != 23 {
		t.Errorf("size %d, stderr at %d, want 28 and 23", d.size(), begin)
	}
	for _, tc := range []struct {
		from, to int64
		text     string
		lost     int64
	}{
		{0, 28, "aé\n[... 10 bytes were not kept ...]\nz\nstderr:\nw1w2\n", 10},
		{0, 2, "a", 0}, // half of the é is none of it
		{2, 3, "é", 0},
		{1, 5, "é\n[... 2 bytes were not kept ...]\n", 2},
		{14, 100, "\nstderr:\nw1w2\n", 0},
		{28, 28, "", 0},
	} {
		if text, lost := d.slice(tc.from, tc.to); text != tc.text || lost != tc.lost {
			t.Errorf("%d to %d is %q without %d, want %q without %d", tc.from, tc.to, text, lost, tc.text, tc.lost)
		}
	}
	for offset, want := range map[int64]int64{0: 0, 1: 1, 2: 1, 3: 3, 7: 7, 13: 13, 28: 28, 40: 40} {
		if got := d.align(offset); got != want {
			t.Errorf("%d is aligned to %d, want %d", offset, got, want)
		}
	}
}

// FuzzReadOutput reads a text with a gap piece by piece: nothing is missing, doubled or torn,
// wherever the pieces end.
func FuzzReadOutput(f *testing.F) {
	f.Add("aé😀\nrest", uint8(3), uint8(1), uint8(0))
	f.Add(strings.Repeat("日本語", 50), uint8(7), uint8(64), uint8(9))
	f.Fuzz(func(t *testing.T, whole string, at, limit, lost uint8) {
		whole = strings.ToValidUTF8(whole, "?")
		i := min(int(at), len(whole))
		for i < len(whole) && !utf8.RuneStart(whole[i]) {
			i++
		}
		p, _ := streams([]sandbox.Chunk{{Text: whole[:i]}, {Lost: int64(lost)}, {Text: whole[i:]}})
		readThrough(t, p, whole, int64(limit))
	})
}

// readThrough reads what is printed limit bytes at a time.
func readThrough(t *testing.T, p printed, whole string, limit int64) {
	t.Helper()
	var got strings.Builder
	var gone int64
	step := max(limit, 4) // the longest character: less would stand still
	for at := int64(0); at < p.size(); {
		to := p.align(min(at+step, p.size()))
		if to <= at {
			t.Fatalf("from %d no further than %d", at, to)
		}
		s, lost := p.slice(at, to)
		gone += lost
		if lost > 0 {
			s = strings.Replace(s, fmt.Sprintf("\n[... %d bytes were not kept ...]\n", lost), "", 1)
		}
		if !utf8.ValidString(s) || int64(len(s))+lost != to-at {
			t.Fatalf("%d to %d is %q without %d", at, to, s, lost)
		}
		got.WriteString(s)
		at = to
	}
	if got.String() != whole || gone != p.lost() {
		t.Fatalf("got %q without %d, want %q without %d", got.String(), gone, whole, p.lost())
	}
	cut, missing := p.cut(limit, func(int64, int64, int64) string { return "" })
	if p.lost() == 0 && int64(len(cut))+missing != p.size() || !utf8.ValidString(cut) {
		t.Fatalf("%q with %d missing, of %q", cut, missing, whole)
	}
}
