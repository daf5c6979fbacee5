package sandbox

import (
	"fmt"
	"unicode/utf8"
)

// capture keeps the beginning and the end of what a run prints, within a limit, and counts what it had to drop between
// them. It is used by one goroutine.
type capture struct {
	half    int // bytes kept of the beginning, and again of the end
	head    []Chunk
	headLen int
	tail    []Chunk
	tailLen int
	dropped Dropped
}

func newCapture(limit int64) *capture { return &capture{half: int(limit / 2)} }

func (c *capture) add(ch Chunk) {
	if room := c.half - c.headLen; room > 0 && len(c.tail) == 0 {
		n := min(room, len(ch.Text))
		for n < len(ch.Text) && n > 0 && !utf8.RuneStart(ch.Text[n]) {
			n--
		}
		c.head = appendChunk(c.head, Chunk{ch.Stream, ch.Text[:n]})
		c.headLen += n
		ch.Text = ch.Text[n:]
	}
	if ch.Text == "" {
		return
	}
	c.tail = appendChunk(c.tail, ch)
	c.tailLen += len(ch.Text)
	for c.tailLen > c.half {
		first := &c.tail[0]
		n := min(c.tailLen-c.half, len(first.Text))
		for n < len(first.Text) && !utf8.RuneStart(first.Text[n]) {
			n++
		}
		c.drop(first.Stream, n)
		first.Text = first.Text[n:]
		c.tailLen -= n
		if first.Text == "" {
			c.tail = c.tail[1:]
		}
	}
}

func (c *capture) drop(stream string, n int) {
	if stream == "stderr" {
		c.dropped.Stderr += int64(n)
	} else {
		c.dropped.Stdout += int64(n)
	}
}

// chunks is what was kept, in order, with a mark in each stream that lost something, where it lost it.
func (c *capture) chunks() []Chunk {
	out := c.head
	for _, d := range []struct {
		stream string
		n      int64
	}{{"stdout", c.dropped.Stdout}, {"stderr", c.dropped.Stderr}} {
		if d.n > 0 {
			out = append(out, Chunk{d.stream, fmt.Sprintf("\n[... %d bytes of %s cut here ...]\n", d.n, d.stream)})
		}
	}
	return append(out, c.tail...)
}

// maxChunk is up to what size neighbours of one stream are joined. Small writes must not cost a slice element each.
const maxChunk = 4 << 10

func appendChunk(chunks []Chunk, ch Chunk) []Chunk {
	if ch.Text == "" {
		return chunks
	}
	if n := len(chunks); n > 0 {
		if last := &chunks[n-1]; last.Stream == ch.Stream && len(last.Text) < maxChunk {
			last.Text += ch.Text
			return chunks
		}
	}
	return append(chunks, ch)
}
