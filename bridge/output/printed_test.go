package output

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func TestPrinted(t *testing.T) {
	out, errs := streams([]sandbox.Chunk{
		{Stream: "stdout", Text: "aé"}, {Stream: "stderr", Text: "w1"}, {Stream: "stdout", Lost: 10},
		{Stream: "stderr"},
		{Stream: "stdout", Text: "z"}, {Stream: "stderr", Text: "w2\n"},
	})
	all, begin := joined(out.text, errs.text)
	if want := "aé\n[... 10 bytes were not kept ...]\nz\nstderr:\nw1w2\n"; all != want ||
		all[begin:] != "w1w2\n" {
		t.Errorf("got %q, and of stderr %q, want %q", all, all[begin:], want)
	}
	if short, missing := out.cut(100, nil); short != out.text || missing != 10 {
		t.Errorf("not cut it is %q without %d", short, missing)
	}
}

var where = regexp.MustCompile(`\n?\[bytes (\d+) to (\d+) of (\d+); (?:that is the end|offset=(\d+) reads ` +
	`on)\]$`)

// FuzzReadOutput reads a text piece by piece: nothing is missing, doubled or torn, wherever the
// pieces end.
func FuzzReadOutput(f *testing.F) {
	f.Add(strings.Repeat("aé😀 rest", 30), uint8(64), uint8(9))
	f.Add(strings.Repeat("日本語", 50), uint8(70), uint8(0))
	f.Fuzz(func(t *testing.T, whole string, limit, lost uint8) {
		whole = strings.ReplaceAll(strings.ToValidUTF8(whole, "?"), "\n", " ")
		r := kept{text: whole}
		got := ""
		for at := 0; at < len(whole); at = len(got) {
			said, err := r.read(int64(at), int64(max(limit, minRead)))
			end := where.FindStringIndex(said)
			if err != nil || end == nil || !utf8.ValidString(said) || end[0] == 0 {
				t.Fatalf("from %d of %d: %q, %v", at, len(whole), said, err)
			}
			got += said[:end[0]]
		}
		if got != whole {
			t.Fatalf("got %q, want %q", got, whole)
		}
		p, _ := streams([]sandbox.Chunk{{Text: whole}, {Lost: int64(lost)}, {Text: whole}})
		var said int64
		short, missing := p.cut(int(limit), func(_ int, n, _ int64) string {
			said = n
			return ""
		})
		if shown := int64(len(short)); lost == 0 && shown+missing != int64(2*len(whole)) ||
			!utf8.ValidString(short) || said > missing {
			t.Fatalf("%q with %d missing, of twice %q and %d", short, missing, whole, lost)
		}
	})
}
