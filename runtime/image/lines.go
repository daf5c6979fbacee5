package image

import "strings"

const (
	maxKept = 3   // complaints for the error
	maxTold = 300 // bytes of each
)

// said is what mmdebstrap has said on stderr. Its own reports go on as progress; what apt and dpkg
// say between them does not. The last complaints are kept for the error.
type said struct {
	progress   func(string)
	complaints []string
	last       string
}

// line takes one line.
func (l *said) line(line string) {
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
func (l *said) complaint() string {
	if len(l.complaints) == 0 {
		return l.last
	}
	return strings.Join(l.complaints, "; ")
}
