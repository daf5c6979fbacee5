package terminal

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// TestControlCharactersAreShown has a row for what a terminal obeys, and for each range of what
// Unicode says that isn't shown.
func TestControlCharactersAreShown(t *testing.T) {
	rows := map[string]string{
		"plain ü 漢 🙂\n\tx":                 "plain ü 漢 🙂\n\tx",
		"[deny] \r  reads only":            `[deny] \x0d  reads only`,
		"a\r\nb":                           "a\\x0d\nb",
		"\x1b[2Jgone\x07":                  `\x1b[2Jgone\x07`,
		"\x1b]52;c;cm0gLXJm\x1b\\":         `\x1b]52;c;cm0gLXJm\x1b\`,
		"\x1bP+q544e\x1b\\":                `\x1bP+q544e\x1b\`,
		"\x1b[6n\x1b[c\x05":                `\x1b[6n\x1b[c\x05`,
		"\u009b31m\u202ereversed\x7f":      `\u009b31m\u202ereversed\x7f`,
		"ab\b\bcd":                         `ab\x08\x08cd`,
		"می\u200cخ 👨\u200d👩 1\ufe0f\u20e3": "می\u200cخ 👨\u200d👩 1\ufe0f\u20e3",
		"a\u200db\u3164\U000e0041":         `a\u200db\u3164\U000e0041`,
		"\x9b31m":                          "\ufffd31m",
	}
	for _, table := range []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector} {
		for _, r := range table.R16 {
			if hi := rune(r.Hi); !unicode.Is(unicode.Prepended_Concatenation_Mark, hi) {
				rows["a"+string(hi)+"b"] = strings.Trim(strconv.QuoteToASCII("a"+string(hi)+"b"), `"`)
			}
		}
		for _, r := range table.R32 {
			if hi := rune(r.Hi); !unicode.Is(unicode.Prepended_Concatenation_Mark, hi) {
				rows["a"+string(hi)+"b"] = strings.Trim(strconv.QuoteToASCII("a"+string(hi)+"b"), `"`)
			}
		}
	}
	if len(rows) < 40 {
		t.Errorf("%d rows", len(rows))
	}
	for in, want := range rows {
		var b strings.Builder
		if n, err := io.WriteString(&Output{to: &b, escape: true}, in); n != len(in) || err != nil ||
			b.String() != want {
			t.Errorf("%+q: wrote %+q, %d, %v; want %+q", in, b.String(), n, err, want)
		}
	}
	// What code prints may draw a progress bar.
	var b strings.Builder
	bar := (&Output{to: &b, escape: true}).Code()
	if _, err := io.WriteString(bar, "10%\r20%\x1b[A\r\n"); err != nil || b.String() != "10%\r20%\\x1b[A\r\n" {
		t.Errorf("a run's output: %q, %v", b.String(), err)
	}
}

// TestBytesPassElsewhere: a file, a pipe and the null device get every byte as it is.
func TestBytesPassElsewhere(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const sent = "a\x1b[2Jb\r\n"
	for _, f := range []*os.File{null, file} {
		o := New(f)
		for _, w := range []io.Writer{o, o.Code()} {
			if _, err := io.WriteString(w, sent); err != nil || o.escape {
				t.Errorf("%s: %v, escaped %v", f.Name(), err, o.escape)
			}
		}
	}
	if got, err := os.ReadFile(file.Name()); err != nil || string(got) != sent+sent {
		t.Errorf("the file has %q, %v", got, err)
	}
}

// TestFirstFailure: an output remembers why it could not write, whichever way it was written to.
func TestFirstFailure(t *testing.T) {
	broken := errors.New("broken")
	for name, write := range map[string]func(*Output){
		"text":   func(o *Output) { _, _ = io.WriteString(o, "a") },
		"code":   func(o *Output) { _, _ = io.WriteString(o.Code(), "a") },
		"screen": func(o *Output) { o.Screen().Lines(0, 0, "a") },
	} {
		o := New(failing{broken})
		if write(o); !errors.Is(o.Err(), broken) {
			t.Errorf("%s: got %v, want %v", name, o.Err(), broken)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestReadAnswer: only y and yes are yes, and what is typed beyond the line is left.
func TestReadAnswer(t *testing.T) {
	for _, tc := range []struct {
		typed, left   string
		yes, answered bool
	}{
		{"y\nhttp://127.0.0.1/callback", "http://127.0.0.1/callback", true, true},
		{" YES \r\n", "", true, true},
		{"yes", "", true, true},
		{"\nyes\n", "yes\n", false, true},
		{"n\n", "", false, true},
		{"yes, sure\n", "", false, true},
		{strings.Repeat(" ", 64) + "y\n", "y\n", false, true},
		{"", "", false, false},
	} {
		in := strings.NewReader(tc.typed)
		yes, answered := readAnswer(in)
		left, _ := io.ReadAll(in)
		if yes != tc.yes || answered != tc.answered || string(left) != tc.left {
			t.Errorf("%q: got %v, %v, left %q; want %v, %v, left %q",
				tc.typed, yes, answered, left, tc.yes, tc.answered, tc.left)
		}
	}
}

// TestWrap breaks between words, or after slashes; what is longer is whole.
func TestWrap(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"one two three", "one two\nthree"},
		{"a/bbbb/cccc/d", "a/bbbb/\ncccc/d"},
		{"x abcdefghijk y", "x\nabcdefghijk\ny"},
		{"one\ntwo", "one\ntwo"},
		{"ab /cde/fghi", "ab /cde/\nfghi"},
	} {
		if got := wrap(tc.in, 8); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.in, got, tc.want)
		}
	}
	if got := wrap("one two three", 0); got != "one two three" {
		t.Errorf("without a width: %q", got)
	}
}

// TestHomeIsShort: only the home itself is ~, not the middle of a longer path.
func TestHomeIsShort(t *testing.T) {
	s := Screen{columns: 80, home: beginning("/home/u")}
	for in, want := range map[string]string{
		"/home/u/a and /home/u/b": "~/a and ~/b",
		"(/home/u/a)":             "(~/a)",
		"/mnt/home/u/a":           "/mnt/home/u/a",
		"/home/ute/a":             "/home/ute/a",
	} {
		if got := s.clean(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestEntry: a text stays beside its word and name, and what is too long to fit is whole.
func TestEntry(t *testing.T) {
	const text = "a b\nc\none two three four\nnext: copy /a/very/long/path/that/is/whole"
	for _, tc := range []struct {
		columns int
		want    string
	}{
		{0, "note  limit memory      a b\n" + pad + "c\n" + pad + "one two three four\n" +
			pad + "next: copy /a/very/long/path/that/is/whole\n"},
		{24 + 14, "note  limit memory      a b\n" + pad + "c\n" + pad + "one two three\n" + pad + "four\n" +
			pad + "next: copy /a/\n" + pad + "very/long/\n" + pad + "path/that/is/\n" + pad + "whole\n"},
	} {
		var b strings.Builder
		(Screen{w: &b, columns: tc.columns}).Entry("note", "limit memory", 16, text)
		if diff := cmp.Diff(tc.want, b.String()); diff != "" {
			t.Errorf("%d columns:\n%s", tc.columns, diff)
		}
	}
}

const pad = "                        "
