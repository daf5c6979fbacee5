package text

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// ignorable are Unicode's tables of what isn't shown, which its Default_Ignorable_Code_Point is
// derived from, and of what ends a line or is obeyed by terminals alone.
var ignorable = map[string]*unicode.RangeTable{
	"Cc": unicode.Cc, "Cf": unicode.Cf, "Zl": unicode.Zl, "Zp": unicode.Zp,
	"Other_Default_Ignorable_Code_Point": unicode.Other_Default_Ignorable_Code_Point,
	"Variation_Selector":                 unicode.Variation_Selector,
	"Bidi_Control":                       unicode.Bidi_Control,
	"Join_Control":                       unicode.Join_Control,
	"Noncharacter_Code_Point":            unicode.Noncharacter_Code_Point,
	"Deprecated":                         {R32: []unicode.Range32{{0xe0001, 0xe0001, 1}}},
}

// TestHidden has a row for each range of each table: its characters don't survive between Latin
// letters, where no script needs them.
func TestHidden(t *testing.T) {
	rows := 0
	row := func(name string, lo, hi, stride rune) {
		rows++
		t.Run(fmt.Sprintf("%s/%04X-%04X", name, lo, hi), func(t *testing.T) {
			for r := lo; r <= hi; r += stride {
				want := "ab"
				switch {
				case r == '\n' || r == '\t' || unicode.Is(unicode.Prepended_Concatenation_Mark, r):
					want = "a" + string(r) + "b"
				case strings.ContainsRune("\r\v\f\u0085\u2028\u2029", r):
					want = "a\nb"
				}
				in := "a" + string(r) + "b"
				if got := Safe(in); got != want {
					t.Errorf("%U: got %q, want %q", r, got, want)
				}
				if got := Line(in); strings.ContainsFunc(got, func(c rune) bool {
					return c != 'a' && c != 'b' &&
						c != ' ' && !unicode.IsGraphic(c) && want == "ab"
				}) {
					t.Errorf("%U: on one line %q", r, got)
				}
			}
		})
	}
	for name, table := range ignorable {
		for _, r := range table.R16 {
			row(name, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range table.R32 {
			row(name, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	if rows < 40 {
		t.Errorf("%d rows", rows)
	}
}

// TestLettersStay holds that nothing that is shown goes: every letter, number, mark, sign and space
// that no table calls ignorable.
func TestLettersStay(t *testing.T) {
	for r := rune(' '); r <= unicode.MaxRune; r++ {
		hidden := !utf8.ValidRune(r)
		for _, table := range ignorable {
			hidden = hidden || unicode.Is(table, r)
		}
		if in := "a" + string(r) + "b"; !hidden && Safe(in) != in {
			t.Errorf("%U: got %q", r, Safe(in))
		}
	}
}

func TestSafe(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"plain", "Lists\tissues.\nAll.", "Lists\tissues.\nAll."},
		{"accents, composed or not", "é e\u0301 ñ", "é e\u0301 ñ"},
		{"tags spell ASCII", "hi\U000e0001\U000e0072\U000e006d\U000e007f", "hi"},
		{"selectors as bytes", "😀\U000e0101\U000e01ef", "😀"},
		{"Hangul fillers", "a\u3164\u115f\u1160\uffa0b", "ab"},
		{"a Hangul syllable of parts", "\u1112\u1161\u11ab", "\u1112\u1161\u11ab"},
		{"interlinear annotation", "\ufff9base\ufffaruby\ufffb", "baseruby"},
		{"ends of lines", "a\r\nb\rc\u2028d\u2029e\u0085f", "a\nb\nc\nd\ne\nf"},
		{"not UTF-8", "a\xff\x9bb", "a\ufffd\ufffdb"},
		{"direction", "a\u202eb\u2066c\u2069\u200f\u061cd", "abcd"},
		{"Persian, ZWNJ", "می\u200cخواهم", "می\u200cخواهم"},
		{"Persian, ZWJ at a word's end", "ه\u200d ", "ه\u200d "},
		{"Arabic with a vowel sign", "بَ\u200cب", "بَ\u200cب"},
		{"Arabic number sign", "\u0600١", "\u0600١"},
		{"Devanagari, half form", "क्\u200dष", "क्\u200dष"},
		{"Devanagari, no ligature", "क्\u200cष", "क्\u200cष"},
		{"Sinhala", "ශ්\u200dරී", "ශ්\u200dරී"},
		{"Malayalam chillu", "ന്\u200d", "ന്\u200d"},
		{"Khmer", "ក\u200cក", "ក\u200cក"},
		{"Mongolian form and vowel", "ᠠ\u180bᠨ\u180e", "ᠠ\u180bᠨ\u180e"},
		{"joiners in a row", "می\u200c\u200d\u200c\u200cخ", "می\u200cخ"},
		{"selectors in a row", "ᠠ\u180b\u180c\u180d", "ᠠ\u180b"},
		{"joiner between Latin letters", "a\u200db\u200cc", "abc"},
		{"joiner after a marked Latin letter", "e\u0301\u200dx", "e\u0301x"},
		{"joiner at the beginning", "\u200dक", "क"},
		{"family", "👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"},
		{"skin tone and profession", "👩🏽\u200d🚀", "👩🏽\u200d🚀"},
		{"heart on fire", "❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"},
		{"eye in speech bubble", "👁\ufe0f\u200d🗨\ufe0f", "👁\ufe0f\u200d🗨\ufe0f"},
		{"runner, female", "🏃\u200d♀\ufe0f", "🏃\u200d♀\ufe0f"},
		{"rainbow flag", "🏳\ufe0f\u200d🌈", "🏳\ufe0f\u200d🌈"},
		{"flag of a country", "🇩🇪", "🇩🇪"},
		{"flag of tags loses its tags", "🏴\U000e0067\U000e0062\U000e007f", "🏴"},
		{"keycap", "1\ufe0f\u20e3 #\ufe0f\u20e3", "1\ufe0f\u20e3 #\ufe0f\u20e3"},
		{"text form", "☎\ufe0e ©\ufe0f ™\ufe0f ‼\ufe0f ㊙\ufe0f", "☎\ufe0e ©\ufe0f ™\ufe0f ‼\ufe0f ㊙\ufe0f"},
		{"selector after a digit", "1\ufe0f2", "12"},
		{"selector after a letter", "a\ufe0fb\ufe0e", "ab"},
		{"selectors after an emoji", "😀\ufe0f\ufe0f\ufe0e", "😀\ufe0f"},
		{"joiner after an emoji before a letter", "😀\u200da", "😀a"},
		{"joiner after an emoji at the end", "😀\u200d", "😀"},
		{"other selectors", "≨\ufe00 漢\ufe00", "≨ 漢"},
		{"combining grapheme joiner", "c\u034fh", "ch"},
		{"escape sequence", "\x1b[31mred\x1b[0m", "[31mred[0m"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Safe(tc.in)
			if got != tc.want {
				t.Errorf("got %+q, want %+q", got, tc.want)
			}
			if again := Safe(got); again != got {
				t.Errorf("a second time: %+q", again)
			}
		})
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü 漢 🙂\n\tx":                   "plain ü 漢 🙂\n\tx",
		"a\rb\x1b\x7f":                       `a\x0db\x1b\x7f`,
		"\u009b\u202e\u3164\ufe0f\U000e0041": `\u009b\u202e\u3164\ufe0f\U000e0041`,
		"می\u200cخ 👨\u200d👩":                 "می\u200cخ 👨\u200d👩",
		"a\x9bb":                             "a\ufffdb",
	} {
		if got := Escape(in); got != want {
			t.Errorf("%+q: got %+q, want %+q", in, got, want)
		}
	}
}

// TestEscapeJSON holds that the value stays the same and that nothing a terminal obeys is left.
func TestEscapeJSON(t *testing.T) {
	for name, table := range ignorable {
		for _, r := range table.R16 {
			checkEscaped(t, name, rune(r.Lo))
		}
		for _, r := range table.R32 {
			checkEscaped(t, name, rune(r.Hi))
		}
	}
}

func checkEscaped(t *testing.T, name string, r rune) {
	t.Helper()
	in, err := json.Marshal("a" + string(r) + "b")
	if err != nil {
		t.Fatal(err)
	}
	out := EscapeJSON(string(in))
	var got string
	if err := json.Unmarshal([]byte(out), &got); err != nil || got != "a"+string(r)+"b" {
		t.Errorf("%s, %U: %s is %+q, %v", name, r, out, got, err)
	}
	if Safe(out) != out {
		t.Errorf("%s, %U: %+q", name, r, out)
	}
}

func TestSchema(t *testing.T) {
	for in, want := range map[string]string{
		`{"description":"plain \\d",` +
			`"title":"T"}`: `{"description":"plain ` +
			`\\d","title":"T"}`,
		"{\"description\": \"a\u200bb\", " +
			"\"enum\":[\"x\u200b\"]}": "{\"description\": \"ab\", " +
			"\"enum\":[\"x\u200b\"]}",
		`{"title" : "a\u202eb","properties":{"title":{"description":"\u3164x"},` +
			`"p\u200b":{"const":"\u200b"}}}`: `{"title" : "ab","properties":{"title":{"description":"x"},` +
			`"p\u200b":{"const":"\u200b"}}}`,
		`{"required":["description",` +
			`"\u200b"]}`: `{"required":["description","\u200b"]}`,
		`"description`: `"description`,
		"":             "",
	} {
		if diff := cmp.Diff(want, string(Schema(json.RawMessage(in)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		s                  string
		n                  int
		first, last, brief string
	}{
		{"abc", 3, "abc", "abc", "abc"}, {"abcd", 3, "abc", "bcd", "ab…"}, {"aéb", 2, "a", "b", "a…"},
		{"ab cd", 4, "ab c", "b cd", "ab …"},
		{"漢字", 2, "", "", "漢字"}, {"漢字", 1, "", "", "…"}, {"", 0, "", "", ""}, {"\x80\x80", 1, "", "", "…"},
	} {
		if first, last, brief := First(tc.s, tc.n), Last(tc.s, tc.n), Brief(tc.s, tc.n); first != tc.first ||
			last != tc.last || brief != tc.brief {
			t.Errorf("%q, %d: %q, %q, %q", tc.s, tc.n, first, last, brief)
		}
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("a\u200dक\u200d😀\ufe0f\x1b\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Safe(s)
		if !utf8.ValidString(got) && !isPlain(s) {
			t.Errorf("%+q is not UTF-8", got)
		}
		if Safe(got) != got || Escape(got) != got {
			t.Errorf("%+q is not safe: %+q", got, Safe(got))
		}
	})
}
