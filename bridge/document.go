package bridge

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// span is a piece of a text: text, or the text compressed, or so many bytes that were not kept.
type span struct {
	text   string
	zipped *zipped
	lost   int64
}

func (s span) size() int64 { return int64(len(s.text)) + s.zipped.size() + s.lost }

// whole is the span's text, as far as it was kept.
func (s span) whole() string {
	if s.zipped != nil {
		return s.zipped.text()
	}
	return s.text
}

// document is a text that lies in pieces. Offsets into it are bytes, and count what was not kept.
type document []span

// stderrHead stands before stderr, where both streams are one text.
const stderrHead = "stderr:\n"

// streams are what a run printed to stdout and to stderr, each in its order.
func streams(chunks []sandbox.Chunk) (stdout, stderr document) {
	for _, c := range chunks {
		if c.Text == "" && c.Lost == 0 {
			continue
		}
		if c.Stream == "stderr" {
			stderr = stderr.with(span{text: c.Text, lost: c.Lost})
		} else {
			stdout = stdout.with(span{text: c.Text, lost: c.Lost})
		}
	}
	return stdout, stderr
}

const (
	maxJoined = 4 << 10 // bytes up to which small texts become one span
	spanCost  = 56      // bytes that a span takes beside its text: itself, and room that the array and the text have beyond
)

// with is the document with a span at its end.
func (d document) with(s span) document {
	if n := len(d); n > 0 && s.lost == 0 && d[n-1].lost == 0 && len(d[n-1].text)+len(s.text) <= maxJoined {
		d[n-1].text += s.text
		return d
	}
	return append(d, s)
}

// both is stdout and, behind it, stderr: the text that run_python shows when nothing is cut. The offset is where stderr begins.
func both(stdout, stderr document) (all document, offset int64) {
	if len(stderr) == 0 {
		return stdout, stdout.size()
	}
	head := stderrHead
	if n := len(stdout); n > 0 && !strings.HasSuffix(stdout[n-1].text, "\n") {
		head = "\n" + head
	}
	all = append(append(append(document{}, stdout...), span{text: head}), stderr...)
	return all, stdout.size() + int64(len(head))
}

func (d document) size() (n int64) {
	for _, s := range d {
		n += s.size()
	}
	return n
}

// held is how many bytes of memory it takes.
func (d document) held() (n int64) {
	for _, s := range d {
		n += int64(len(s.text)) + s.zipped.held() + spanCost
	}
	return n
}

// slice is the text from one offset to another, both moved back to where a character begins, and how many bytes of it were not
// kept: a mark says where.
func (d document) slice(from, to int64) (piece string, lost int64) {
	var b strings.Builder
	for s, part := range d.between(from, to) {
		if s.lost > 0 {
			lost += part.to - part.from
			fmt.Fprintf(&b, "\n[... %s bytes were not kept ...]\n", text.Count(part.to-part.from))
			continue
		}
		whole := s.whole()
		b.WriteString(whole[back(whole, part.from):back(whole, part.to)])
	}
	return b.String(), lost
}

// lost is how many bytes from one offset to another were not kept.
func (d document) lost(from, to int64) (n int64) {
	for s, part := range d.between(from, to) {
		if s.lost > 0 {
			n += part.to - part.from
		}
	}
	return n
}

// part is a part of a span, by offsets into it.
type part struct{ from, to int64 }

// between are the spans from one offset to another, with the part of each that lies there.
func (d document) between(from, to int64) iter.Seq2[span, part] {
	return func(yield func(span, part) bool) {
		at := int64(0)
		for _, s := range d {
			p := part{max(from-at, 0), min(to-at, s.size())}
			at += s.size()
			if p.from < p.to && !yield(s, p) {
				return
			}
		}
	}
}

// align moves an offset back to where a character begins.
func (d document) align(offset int64) int64 {
	at := int64(0)
	for _, s := range d {
		if in := offset - at; in < s.size() {
			if s.lost > 0 || in <= 0 {
				return offset
			}
			return at + back(s.whole(), in)
		}
		at += s.size()
	}
	return offset
}

func back(s string, i int64) int64 {
	for i > 0 && i < int64(len(s)) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// cut is the text without its middle where it is longer than limit bytes, and how many bytes of it are missing. Mark makes what
// stands for so many bytes from an offset on, of which some were not kept.
func (d document) cut(limit int64, mark func(offset, n, lost int64) string) (text string, missing int64) {
	size := d.size()
	if size <= limit {
		return d.slice(0, size)
	}
	from, to := d.align(limit/2), d.align(size-limit/2)
	head, lostHead := d.slice(0, from)
	tail, lostTail := d.slice(to, size)
	return head + mark(from, to-from, d.lost(from, to)) + tail, to - from + lostHead + lostTail
}
