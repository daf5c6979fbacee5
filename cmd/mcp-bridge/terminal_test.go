package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

func TestControlCharactersAreShown(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü 漢 🙂\n\tx\r":          "plain ü 漢 🙂\n\tx\r",
		"\x1b[2Jgone\x07":             `\x1b[2Jgone\x07`,
		"\x1b]52;c;cm0gLXJm\x1b\\":    `\x1b]52;c;cm0gLXJm\x1b\`,
		"\u009b31m\u202ereversed\x7f": `\u009b31m\u202ereversed\x7f`,
	} {
		var b strings.Builder
		if n, err := io.WriteString(visible{&b}, in); n != len(in) || err != nil || b.String() != want {
			t.Errorf("%q: wrote %q, %d, %v; want %q", in, b.String(), n, err, want)
		}
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
