package sandbox

import (
	"strings"
	"unicode/utf8"
)

// capture keeps the beginning and the end of what a run prints, within a limit, and counts what it
// had to drop between them. It is used by one goroutine.
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
	if room := c.half - c.headLen; room > 0 && len(c.tail) == 0 && c.dropped == (Dropped{}) {
		n := min(room, len(ch.Text))
		for n < len(ch.Text) && n > 0 && !utf8.RuneStart(ch.Text[n]) {
			n--
		}
		c.head = appendChunk(c.head, part(ch, 0, n))
		c.headLen += n
		ch = part(ch, n, len(ch.Text))
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
		c.tailLen -= n
		if n == len(first.Text) {
			c.tail[0] = Chunk{} // its text can go now; the array goes with the next append
			c.tail = c.tail[1:]
		} else {
			*first = part(*first, n, len(first.Text))
		}
	}
}

// part returns a piece of a chunk that doesn't hold the rest of it in memory, when there is much of
// that.
func part(ch Chunk, from, to int) Chunk {
	text := ch.Text[from:to]
	if len(ch.Text)-len(text) > maxChunk {
		text = strings.Clone(text)
	}
	return Chunk{Stream: ch.Stream, Text: text}
}

func (c *capture) drop(stream string, n int) {
	if stream == "stderr" {
		c.dropped.Stderr += int64(n)
	} else {
		c.dropped.Stdout += int64(n)
	}
}

// chunks returns what was kept, in order, with a Chunk in each stream that lost something, where it
// lost it, that says how much.
func (c *capture) chunks() []Chunk {
	out := c.head
	if n := c.dropped.Stdout; n > 0 {
		out = append(out, Chunk{Stream: "stdout", Lost: n})
	}
	if n := c.dropped.Stderr; n > 0 {
		out = append(out, Chunk{Stream: "stderr", Lost: n})
	}
	return append(out, c.tail...)
}

// Bounds of the pieces in which the beginning and the end lie. One costs ten times what a text of
// one byte does: where the code writes a byte to each stream in turn, they would take far more
// memory than what is printed.
const (
	maxChunk = 4 << 10 // bytes up to which neighbours of one stream are joined
	// from which on the order between the streams is given up, and a chunk need not be the
	// neighbour
	maxChunks = 1 << 10
)

func appendChunk(chunks []Chunk, ch Chunk) []Chunk {
	if ch.Text == "" {
		return chunks
	}
	back := 1
	if len(chunks) >= maxChunks {
		back = 2 // the last of the other stream is passed over
	}
	for i := len(chunks) - 1; i >= max(0, len(chunks)-back); i-- {
		if last := &chunks[i]; last.Stream == ch.Stream {
			if len(last.Text) >= maxChunk {
				break
			}
			last.Text += ch.Text
			return chunks
		}
	}
	return append(chunks, ch)
}
