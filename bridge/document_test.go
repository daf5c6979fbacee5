package bridge

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func TestDocument(t *testing.T) {
	out, errs := streams([]sandbox.Chunk{
		{Stream: "stdout", Text: "aé"}, {Stream: "stderr", Text: "w1"}, {Stream: "stdout", Lost: 10}, {Stream: "stderr"}, {Stream: "stdout", Text: "z"}, {Stream: "stderr", Text: "w2\n"},
	})
	d, begin := both(out, errs)
	if d.size() != 28 || begin != 23 || d.held() != 18+5*spanCost { // w1 and w2 are one span
		t.Errorf("size %d, stderr at %d, %d held", d.size(), begin, d.held())
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

// TestTinySpans: pieces of a byte each are joined, and what remains of them is counted.
func TestTinySpans(t *testing.T) {
	const n = 100_000
	var chunks []sandbox.Chunk
	for range n {
		chunks = append(chunks, sandbox.Chunk{Stream: "stdout", Text: "o"}, sandbox.Chunk{Stream: "stderr", Text: "e"})
	}
	out, errs := streams(chunks)
	d, _ := both(out, errs)
	if text, _ := d.slice(0, d.size()); text != strings.Repeat("o", n)+"\nstderr:\n"+strings.Repeat("e", n) {
		t.Error("the text has changed")
	}
	if bound := 2*n/maxJoined + 3; len(d) > bound || cap(d) > 2*bound || d.held() < d.size()+int64(len(d))*24 {
		t.Errorf("%d spans in %d places, counted as %d bytes", len(d), cap(d), d.held())
	}
}

// FuzzReadOutput reads a document piece by piece: nothing is missing, doubled or torn, wherever the pieces end.
func FuzzReadOutput(f *testing.F) {
	f.Add("aé😀\nrest", uint8(3), uint8(1))
	f.Add(strings.Repeat("日本語", 50), uint8(7), uint8(64))
	f.Fuzz(func(t *testing.T, text string, piece, limit uint8) {
		text = strings.ToValidUTF8(text, "?")
		var d document
		for rest := text; rest != ""; {
			n := min(int(piece)%31+1, len(rest))
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			d = append(d, span{text: rest[:n]})
			rest = rest[n:]
		}
		for _, d := range []document{d, d.packed()} {
			readThrough(t, d, text, int64(limit))
		}
	})
}

// readThrough reads a document of a text, limit bytes at a time.
func readThrough(t *testing.T, d document, text string, limit int64) {
	t.Helper()
	var got strings.Builder
	step := max(limit, 4) // the longest character: less would stand still
	for at := int64(0); at < d.size(); {
		to := d.align(min(at+step, d.size()))
		if to <= at {
			t.Fatalf("from %d no further than %d", at, to)
		}
		s, _ := d.slice(at, to)
		if !utf8.ValidString(s) || int64(len(s)) != to-at {
			t.Fatalf("%d to %d is %q", at, to, s)
		}
		got.WriteString(s)
		at = to
	}
	if got.String() != text {
		t.Fatalf("got %q of %q", got.String(), text)
	}
	cut, missing := d.cut(limit, func(int64, int64, int64) string { return "" })
	if int64(len(cut))+missing != d.size() || !utf8.ValidString(cut) {
		t.Fatalf("%q with %d missing, of %q", cut, missing, text)
	}
}

func TestSizesForReaders(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1234: "1,234 bytes", 12345: "12 kB", 1 << 20: "1.0 MB", 64 << 20: "67.1 MB"} {
		if got := text.Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := text.Count(1234567); got != "1,234,567" {
		t.Error(got)
	}
}
