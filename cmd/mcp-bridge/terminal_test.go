package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"
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
	for _, table := range []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector} {
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
		if n, err := io.WriteString(visible{w: &b}, in); n != len(in) || err != nil || b.String() != want {
			t.Errorf("%+q: wrote %+q, %d, %v; want %+q", in, b.String(), n, err, want)
		}
	}
	// What code prints may draw a progress bar.
	var b strings.Builder
	if _, err := io.WriteString(codeOutput(&watched{w: visible{w: &b}}), "10%\r20%\x1b[A\r\n"); err != nil || b.String() != "10%\r20%\\x1b[A\r\n" {
		t.Errorf("a run's output: %q, %v", b.String(), err)
	}
	// A file and a pipe get every byte as it is; what is a character device may be a terminal.
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, w := range []io.Writer{file, &strings.Builder{}} {
		if got := shown(w); got != w {
			t.Errorf("%T became %T", w, got)
		}
	}
	if _, ok := shown(null).(visible); !ok {
		t.Error("a device is taken for a file")
	}
}
