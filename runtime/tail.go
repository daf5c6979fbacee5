package runtime

import (
	"bytes"
	"net/url"
	"strings"
	"sync"
)

// Tail keeps the last bytes that were written to it, for errors that quote a program. It is safe
// for concurrent use.
type Tail struct {
	Limit int // bytes

	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p[max(0, len(p)-t.Limit):]...)
	if over := len(t.buf) - t.Limit; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// String returns what was kept, without the space around it. What is no UTF-8, as a character that
// was cut, is replaced.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.buf)), "\uFFFD")
}

// maxLine bounds a line of Lines in bytes; the rest of a longer one is dropped.
const maxLine = 4 << 10

// Lines hands on what a program writes line by line, without the space around a line and without
// empty ones. It is for one goroutine at a time.
type Lines struct {
	To Progress // nil means silence

	held []byte
}

// Write implements io.Writer. It never fails.
func (l *Lines) Write(p []byte) (int, error) {
	for rest := p; ; {
		i := bytes.IndexAny(rest, "\n\r")
		part := rest
		if i >= 0 {
			part = rest[:i]
		}
		l.held = append(l.held, part[:min(len(part), maxLine-len(l.held))]...)
		if i < 0 {
			return len(p), nil
		}
		l.Flush()
		rest = rest[i+1:]
	}
}

// Flush ends a line.
func (l *Lines) Flush() {
	line := strings.TrimSpace(strings.ToValidUTF8(string(l.held), "\uFFFD"))
	l.held = l.held[:0]
	if line != "" && l.To != nil {
		l.To(line)
	}
}

// OneLine returns text of an engine or a program on one line, as errors are.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Redacted returns an endpoint without the password that may be in it, for errors and logs; empty
// for one that is no URL, in which it can't be found.
func Redacted(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return u.Redacted()
}
