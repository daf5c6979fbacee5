package output

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// printed is what a run printed. Its offsets are in bytes and count those that were not kept.
type printed struct {
	text string
	gaps []gap // in order; none overlap
}

// A gap stands for n bytes from offset at on that were not kept.
type gap struct{ at, n int64 }

// stderrHead stands before stderr where both streams are one text.
const stderrHead = "stderr:\n"

// streams returns what a run printed to stdout and to stderr.
func streams(chunks []sandbox.Chunk) (stdout, stderr printed) {
	var outText, errText strings.Builder
	for _, c := range chunks {
		b, p := &outText, &stdout
		if c.Stream == "stderr" {
			b, p = &errText, &stderr
		}
		if c.Lost > 0 {
			p.gaps = append(p.gaps, gap{int64(b.Len()) + p.lost(), c.Lost})
		}
		b.WriteString(c.Text)
	}
	stdout.text, stderr.text = outText.String(), errText.String()
	return stdout, stderr
}

// joined returns stdout and, behind it, stderr, which is the text that run_python shows when
// nothing is cut, and the offset at which stderr begins.
func joined(stdout, stderr printed) (all printed, offset int64) {
	if stderr.size() == 0 {
		return stdout, stdout.size()
	}
	head := stderrHead
	if stdout.size() > 0 && !strings.HasSuffix(stdout.text, "\n") {
		head = "\n" + head
	}
	offset = stdout.size() + int64(len(head))
	all = printed{text: stdout.text + head + stderr.text}
	all.gaps = append(all.gaps, stdout.gaps...)
	for _, g := range stderr.gaps {
		all.gaps = append(all.gaps, gap{offset + g.at, g.n})
	}
	return all, offset
}

// lost returns the number of bytes that were not kept.
func (p printed) lost() (n int64) {
	for _, g := range p.gaps {
		n += g.n
	}
	return n
}

func (p printed) size() int64 { return int64(len(p.text)) + p.lost() }

// index returns where in the text an offset lies, and how many bytes before it were not kept.
func (p printed) index(offset int64) (i, lost int64) {
	for _, g := range p.gaps {
		lost += min(max(offset-g.at, 0), g.n)
	}
	return min(offset-lost, int64(len(p.text))), lost
}

// align moves an offset back to where a character begins.
func (p printed) align(offset int64) int64 {
	i, _ := p.index(offset)
	back := int64(0)
	for i-back > 0 && i-back < int64(len(p.text)) && !utf8.RuneStart(p.text[i-back]) {
		back++
	}
	return offset - back
}

// slice returns the text from one offset to another, both aligned, and how many bytes of it were
// not kept. A mark stands for those.
func (p printed) slice(from, to int64) (piece string, lost int64) {
	from, to = p.align(from), p.align(min(to, p.size()))
	var b strings.Builder
	at := from
	upTo := func(offset int64) {
		i, _ := p.index(at)
		j, _ := p.index(offset)
		b.WriteString(p.text[i:max(i, j)])
	}
	for _, g := range p.gaps {
		begin, end := max(g.at, from), min(g.at+g.n, to)
		if begin >= end {
			continue
		}
		upTo(begin)
		fmt.Fprintf(&b, "\n[... %s bytes were not kept ...]\n", text.Count(end-begin))
		lost += end - begin
		at = end
	}
	upTo(to)
	return b.String(), lost
}

// cut returns the text without its middle where it is longer than limit bytes, and how many bytes
// of it are missing. Mark returns what stands for n bytes from an offset on, of which some were
// lost.
func (p printed) cut(limit int64, mark func(offset, n, lost int64) string) (short string, missing int64) {
	size := p.size()
	if size <= limit {
		return p.slice(0, size)
	}
	from, to := p.align(limit/2), p.align(size-limit/2)
	head, lostHead := p.slice(0, from)
	tail, lostTail := p.slice(to, size)
	_, before := p.index(from)
	_, after := p.index(to)
	return head + mark(from, to-from, after-before) + tail, to - from + lostHead + lostTail
}
