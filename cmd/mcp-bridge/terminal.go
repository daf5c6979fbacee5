package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// shown is w, or where w is a terminal, what shows control characters there instead of sending them: what the code of a run or a
// server says could otherwise move the cursor, change what was printed before, or have the terminal type an answer.
func shown(w io.Writer) io.Writer {
	f, ok := w.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return w
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return w
	}
	return visible{w}
}

// visible writes control characters as Go would in a string. Only ends of lines and tabs go through, and the carriage returns with
// which progress is shown. A character that is cut between two writes comes out as two that aren't one.
type visible struct{ w io.Writer }

func (v visible) Write(p []byte) (int, error) {
	var b strings.Builder
	for _, r := range string(p) {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || !unicode.In(r, unicode.Cc, unicode.Bidi_Control):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	if _, err := io.WriteString(v.w, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}
