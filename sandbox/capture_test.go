package sandbox

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestCapture(t *testing.T) {
	out, err := func(s string) Chunk { return Chunk{Stream: "stdout", Text: s} },
		func(s string) Chunk { return Chunk{Stream: "stderr", Text: s} }
	lost := func(stream string, n int64) Chunk { return Chunk{Stream: stream, Lost: n} }
	for _, tc := range []struct {
		name string
		in   []Chunk
		want []Chunk
	}{
		{"nothing", nil, nil},
		{"all", []Chunk{out("ab"), out("cd"), err("e")}, []Chunk{out("abcd"), err("e")}},
		{"just all", []Chunk{out("12345"), out("67890")}, []Chunk{out("12345"), out("67890")}},
		{"one too many", []Chunk{out("12345"), out("678901")},
			[]Chunk{out("12345"), lost("stdout", 1), out("78901")}},
		{"both streams", []Chunk{out("123"), err("4567"), out("89"), err("0abc")},
			[]Chunk{out("123"), err("45"), lost("stdout", 1), lost("stderr", 2), out("9"), err("0abc")}},
		{"runes stay whole", []Chunk{out("aéé"), out("ééé"), out("é")},
			[]Chunk{out("aéé"), lost("stdout", 4), out("éé")}},
		{"in one piece", []Chunk{out(strings.Repeat("x", 100) + "end")},
			[]Chunk{out("xxxxx"), lost("stdout", 93), out("xxend")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCapture(10)
			for _, ch := range tc.in {
				c.add(ch)
			}
			if diff := cmp.Diff(tc.want, c.chunks()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTinyChunks: a byte to each stream in turn costs no more than its text and a bounded number of
// chunks.
func TestTinyChunks(t *testing.T) {
	const n = 1_000_000
	streams := [2]string{"stdout", "stderr"}
	var want [2]strings.Builder
	for _, limit := range []int64{8 << 20, 256 << 10} {
		c := newCapture(limit)
		for i := range n {
			b := string(rune('a' + i/2%26))
			if c.add(Chunk{Stream: streams[i%2], Text: b}); limit == 8<<20 {
				want[i%2].WriteString(b)
			}
		}
		chunks := c.chunks()
		if bound := 2*maxChunks + 2*int(limit)/maxChunk + 4; len(chunks) > bound || cap(c.tail) > 2*bound {
			t.Errorf("%d: %d chunks are kept, in %d places, more than %d", limit, len(chunks), cap(c.tail), bound)
		}
		var kept int64
		for i, stream := range streams {
			var head, tail strings.Builder
			part, lost := &head, int64(0)
			for _, ch := range chunks {
				if ch.Stream == stream {
					if ch.Lost > 0 {
						part, lost = &tail, ch.Lost
					}
					part.WriteString(ch.Text)
				}
			}
			whole := want[i].String()
			if !strings.HasPrefix(whole, head.String()) || !strings.HasSuffix(whole, tail.String()) ||
				int64(head.Len()+tail.Len())+lost != int64(len(whole)) {
				t.Errorf("%d: of %s there are %d bytes, %d lost and %d", limit, stream, head.Len(), lost, tail.Len())
			}
			if lost > 0 && min(head.Len(), tail.Len()) < int(limit/4)-maxChunk {
				t.Errorf("%d: the other stream left %s no more than %d and %d bytes", limit, stream, head.Len(),
					tail.Len())
			}
			kept += int64(head.Len() + tail.Len())
		}
		if kept != min(n, limit) {
			t.Errorf("%d: %d bytes are kept", limit, kept)
		}
	}
}

// FuzzCapture: within the limit nothing is lost; beyond it, what is kept and what is lost add up,
// and no rune is torn.
func FuzzCapture(f *testing.F) {
	f.Add("aé😀", uint8(3), uint8(7))
	f.Add("蕅0", uint8(0), uint8(2)) // the end is empty once the first of it was dropped
	f.Add(strings.Repeat("0123456789", 30), uint8(13), uint8(40))
	f.Fuzz(func(t *testing.T, text string, piece, limit uint8) {
		text = strings.ToValidUTF8(text, "?")
		c := newCapture(int64(limit))
		for i, rest := 0, text; rest != ""; i++ {
			n := min(int(piece)%17+1, len(rest))
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			c.add(Chunk{Stream: []string{"stdout", "stderr"}[i%2], Text: rest[:n]})
			rest = rest[n:]
		}
		var kept strings.Builder
		gap := -1
		for _, ch := range c.chunks() {
			if ch.Lost > 0 && gap < 0 {
				gap = kept.Len()
			}
			kept.WriteString(ch.Text)
		}
		got, lost := kept.String(), int(c.dropped.Stdout+c.dropped.Stderr)
		if len(got)+lost != len(text) || len(got) > int(limit) || !utf8.ValidString(got) {
			t.Fatalf("kept %q, lost %d of %q at a limit of %d", got, lost, text, limit)
		}
		if lost == 0 && got != text || lost > 0 && (gap < 0 || text[:gap]+text[gap+lost:] != got) {
			t.Fatalf("kept %q with a gap of %d at %d, of %q", got, lost, gap, text)
		}
	})
}
