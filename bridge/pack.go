package bridge

import (
	"bytes"
	"compress/flate"
	"io"
	"strings"
	"sync"
)

// What is kept of runs is hardly ever read, and what code prints is mostly lines that look alike: compressed, a few megabytes are left of
// the tens that are kept, and the garbage collector lets as much again lie.

// maxBlock is bytes of text that are compressed together: a piece of a document is read without the rest of it.
const maxBlock = 64 << 10

// zippedCost is bytes that a piece takes beside its text.
const zippedCost = 32

// zipped is compressed text. Nothing changes it. A nil one is empty.
type zipped struct {
	packed []byte
	length int // of the text
}

func (z *zipped) size() int64 {
	if z == nil {
		return 0
	}
	return int64(z.length)
}

// held is how many bytes of memory it takes.
func (z *zipped) held() int64 {
	if z == nil {
		return 0
	}
	return int64(len(z.packed)) + zippedCost
}

func (z *zipped) text() string {
	var s strings.Builder
	s.Grow(z.length)
	if _, err := io.Copy(&s, flate.NewReader(bytes.NewReader(z.packed))); err != nil {
		panic(err) // it is our own, in memory
	}
	return s.String()
}

// packer compresses texts, one after the other.
type packer struct {
	out   bytes.Buffer
	flate *flate.Writer
}

// packers are kept for a while: one takes a megabyte to make.
var packers = sync.Pool{New: func() any {
	p := new(packer)
	p.flate, _ = flate.NewWriter(&p.out, flate.BestSpeed) // there is such a level
	return p
}}

// pack gives a span of a text: compressed, where that saves an eighth at least.
func (p *packer) pack(text []byte) span {
	p.out.Reset()
	p.flate.Reset(&p.out)
	_, err := p.flate.Write(text)
	if err == nil {
		err = p.flate.Close()
	}
	if err != nil || p.out.Len() > len(text)-len(text)/8 {
		return span{text: string(text)}
	}
	return span{zipped: &zipped{packed: bytes.Clone(p.out.Bytes()), length: len(text)}}
}

// packed is the same document, compressed. Like a document, it has no character in two spans.
func (d document) packed() document {
	p := packers.Get().(*packer)
	defer packers.Put(p)
	var all document
	text := make([]byte, 0, maxBlock)
	flush := func() {
		if len(text) > 0 {
			all = append(all, p.pack(text))
			text = text[:0]
		}
	}
	for _, s := range d {
		if s.lost > 0 || s.zipped != nil {
			flush()
			all = append(all, s)
			continue
		}
		for rest := s.text; rest != ""; {
			n := len(rest)
			if room := maxBlock - len(text); n > room {
				if n = int(back(rest, int64(room))); n == 0 && len(text) == 0 {
					n = room // no text has so long a character
				}
			}
			text = append(text, rest[:n]...)
			if rest = rest[n:]; rest != "" {
				flush()
			}
		}
	}
	flush()
	return all
}
