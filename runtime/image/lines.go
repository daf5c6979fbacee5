package image

import (
	"bytes"
	"strings"
)

const (
	maxLine = 4 << 10 // of what a program says; the rest of a longer line is dropped
	maxKept = 3       // complaints for the error
	maxTold = 300     // bytes of each
)

// saidLines takes what mmdebstrap writes to stderr. Its own reports go on as progress; what apt and
// dpkg say between them does not. The last complaints are kept for the error.
type saidLines struct {
	progress   func(string)
	partial    []byte
	complaints []string
	last       string
}

func (l *saidLines) Write(p []byte) (int, error) {
	rest := p
	for {
		i := bytes.IndexAny(rest, "\n\r")
		if i < 0 {
			l.hold(rest)
			return len(p), nil
		}
		l.hold(rest[:i])
		l.flush()
		rest = rest[i+1:]
	}
}

func (l *saidLines) hold(b []byte) {
	if room := maxLine - len(l.partial); len(b) > room {
		b = b[:max(room, 0)]
	}
	l.partial = append(l.partial, b...)
}

// flush ends a line.
func (l *saidLines) flush() {
	line := strings.TrimSpace(strings.ToValidUTF8(string(l.partial), "?"))
	l.partial = l.partial[:0]
	if line == "" {
		return
	}
	if s, ok := strings.CutPrefix(line, "I: "); ok {
		l.progress(s)
		return
	}
	l.last = line
	// "E: " is mmdebstrap's and apt's way to complain; apt also says "Err:1 http://…".
	if s, ok := strings.CutPrefix(line, "E: "); ok || strings.HasPrefix(line, "Err:") {
		if len(s) > maxTold {
			s = strings.ToValidUTF8(s[:maxTold], "") + "…"
		}
		l.complaints = append(l.complaints, s)
		if len(l.complaints) > maxKept {
			l.complaints = l.complaints[1:]
		}
	}
}

// complaint returns what went wrong, as far as was said; empty when nothing was.
func (l *saidLines) complaint() string {
	if len(l.complaints) == 0 {
		return l.last
	}
	return strings.Join(l.complaints, "; ")
}
