package upstream

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	ringSize  = 64 << 10 // of a server's stderr that is kept
	tailSize  = 2 << 10  // and shown
	noiseSize = 200      // of a line on stdout that is no message

	noiseMark  = "[stdout] " // begins such a line
	noiseLines = 5           // of them are shown
)

// ring keeps the last of what a server wrote to its stderr, and of its stdout what was no message.
// It never blocks the server. It may be used concurrently.
type ring struct {
	mask *mask

	mu  sync.Mutex
	buf []byte
	cut bool // the beginning is lost
}

func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf = append(r.buf, p[max(0, len(p)-ringSize):]...)
	if over := len(r.buf) - ringSize; over > 0 {
		r.buf = append(r.buf[:0], r.buf[over:]...)
		r.cut = true
	}
	return len(p), nil
}

// noise keeps a line of stdout that is no message.
func (r *ring) noise(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) > noiseSize {
		line = append(slices.Clip(line[:noiseSize]), "…"...)
	}
	_, _ = r.Write(append(append([]byte(noiseMark), line...), '\n'))
}

// drain copies from the server's stderr until that ends or is closed.
func (r *ring) drain(src io.Reader) { _, _ = io.Copy(r, src) }

var ansi = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// tail returns the last lines, as text that can be shown.
func (r *ring) tail() string {
	r.mu.Lock()
	last, cut := string(r.buf), r.cut
	r.mu.Unlock()
	if cut { // the first line isn't whole, and neither may be a secret in it
		_, last, _ = strings.Cut(last, "\n")
	}
	last = ansi.ReplaceAllString(r.mask.text(strings.ToValidUTF8(last, "\uFFFD")), "")
	last = fewer(strings.TrimSpace(text.Safe(last)))
	if len(last) > tailSize {
		last = text.Last(last, tailSize)
		if _, rest, ok := strings.Cut(last, "\n"); ok {
			last = rest
		}
	}
	return last
}

// fewer returns s without all but the last lines of stdout that are no messages.
func fewer(s string) string {
	lines := strings.Split(s, "\n")
	slices.Reverse(lines)
	n := 0
	lines = slices.DeleteFunc(lines, func(line string) bool {
		if strings.HasPrefix(line, noiseMark) {
			n++
		}
		return n > noiseLines && strings.HasPrefix(line, noiseMark)
	})
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}
