package upstream

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

const (
	ringSize  = 64 << 10 // of a server's stderr that is kept
	tailSize  = 2 << 10  // and shown
	minSecret = 4        // shorter values are masked nowhere: they occur in any text
	noiseSize = 200      // of a line on stdout that is no message
)

// ring keeps the last of what a server wrote to its stderr, and of its stdout what was no message. It never blocks the
// server. It may be used concurrently.
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
	_, _ = r.Write(append(append([]byte("[stdout] "), line...), '\n'))
}

// drain copies from the server's stderr until that ends or is closed.
func (r *ring) drain(src io.Reader) { _, _ = io.Copy(r, src) }

var ansi = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// tail is the last lines, as text that can be shown.
func (r *ring) tail() string {
	r.mu.Lock()
	text, cut := string(r.buf), r.cut
	r.mu.Unlock()
	if cut { // the first line isn't whole, and neither may be a secret in it
		_, text, _ = strings.Cut(text, "\n")
	}
	text = ansi.ReplaceAllString(r.mask.text(strings.ToValidUTF8(text, "\uFFFD")), "")
	text = strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && unicode.IsControl(c) {
			return -1
		}
		return c
	}, text)
	text = strings.TrimSpace(text)
	if len(text) > tailSize {
		text = text[len(text)-tailSize:]
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
		text = strings.ToValidUTF8(text, "")
	}
	return text
}

// mask hides the values that a server's configuration gives it from every text that is shown. It is immutable.
type mask struct{ replacer *strings.Replacer }

var (
	secretName = regexp.MustCompile(`(?i)(key|token|secret|passw|pwd|credential|auth|header)`)

	// plainValue are paths, addresses without user or query, and single words: they tell nothing, and an error without them
	// tells nobody what is wrong.
	plainValue = regexp.MustCompile(`^([.~]{0,2}/.*|[A-Za-z]:\\.*|[a-z]+://[^@?]*|[a-z-]{1,16})$`)
)

// newMask makes a mask for the environment values of at least four characters, but for plain ones whose name says nothing of
// a secret, and for the values of arguments that are named like secrets.
func newMask(env map[string]string, args []string) *mask {
	var values []string
	for k, v := range env {
		if secretName.MatchString(k) || !plainValue.MatchString(v) {
			values = append(values, v)
			values = append(values, strings.Split(v, "\n")...)
		}
	}
	for i, a := range args {
		name, value, ok := strings.Cut(a, "=")
		switch {
		case !strings.HasPrefix(a, "-") || !secretName.MatchString(name):
		case ok:
			values = append(values, value)
		case i+1 < len(args):
			values = append(values, args[i+1])
		}
	}
	values = slices.DeleteFunc(values, func(v string) bool {
		return len(strings.TrimSpace(v)) < minSecret || v == "true" || v == "false"
	})
	// The longest first: one value may be the beginning of another.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v, "***")
	}
	return &mask{replacer: strings.NewReplacer(pairs...)}
}

func (m *mask) text(s string) string { return m.replacer.Replace(s) }
