package sandbox

import (
	"encoding/base64"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// Bounds of the files that a run hands over. The guest keeps to them too, and tells the code; here
// is what counts.
const (
	maxFiles      = 100
	maxFileName   = 255 // bytes
	maxMIME       = 100 // bytes
	maxLostNames  = 20  // names that a Result gives of files that were not kept
	pieceOverhead = 256 // what a piece counts beside its bytes, so that empty ones count too

	// heldRuns is how many runs may hold files to their limit at a time; further ones can hand over
	// less.
	heldRuns = 8
)

// collector puts together the files of one run. It is used by one goroutine.
type collector struct {
	limit int64         // bytes of all files of the run
	held  *atomic.Int64 // bytes of the files of all runs under way
	total int64         // the most of those

	bytes   int64 // taken of both
	files   []Artifact
	partial map[string]*partial
	names   map[string]bool
	lost    []string
	lostN   int
}

// partial is a file of which not all pieces are there yet.
type partial struct {
	mime string
	data []byte
	next int // the piece that comes next, from 1
	of   int
	drop bool // it will not be kept
}

func newCollector(limit int64, held *atomic.Int64) *collector {
	return &collector{limit: limit, held: held, total: heldRuns * limit, partial: map[string]*partial{},
		names: map[string]bool{}}
}

// add takes one piece. False means that the frame makes no sense.
func (c *collector) add(f entrypoint.FromGuest) bool {
	data, err := base64.StdEncoding.DecodeString(f.Data)
	of, chunk := max(f.Of, 1), max(f.Chunk, 1)
	if err != nil || f.Name == "" || len(f.Name) > maxFileName || chunk > of {
		return false
	}
	p := c.partial[f.Name]
	switch {
	case p == nil && chunk == 1 && len(c.partial) < maxFiles:
		p = &partial{mime: f.Mime, next: 1, of: of}
		c.partial[f.Name] = p
	case p == nil || chunk != p.next || of != p.of:
		return false
	}
	p.next++
	if !p.drop {
		p.drop = !c.take(int64(len(data) + len(f.Name) + len(f.Mime) + pieceOverhead))
	}
	if p.drop {
		p.data = nil
	} else {
		p.data = append(p.data, data...)
	}
	if chunk == of {
		delete(c.partial, f.Name)
		c.finished(f.Name, p)
	}
	return true
}

func (c *collector) take(n int64) bool {
	if c.bytes+n > c.limit || len(c.files) >= maxFiles {
		return false
	}
	if c.held.Add(n) > c.total {
		c.held.Add(-n)
		return false
	}
	c.bytes += n
	return true
}

func (c *collector) finished(name string, p *partial) {
	name = c.free(safeName(name))
	if p.drop {
		c.lose(name)
		return
	}
	c.names[strings.ToLower(name)] = true
	c.files = append(c.files, Artifact{Name: name, Mime: safeMIME(p.mime), Data: p.data})
}

func (c *collector) lose(name string) {
	c.lostN++
	if len(c.lost) < maxLostNames {
		c.lost = append(c.lost, name)
	}
}

// result returns what was kept, and what wasn't. Files of which pieces are missing are lost.
func (c *collector) result() (kept []Artifact, lost []string) {
	for name := range c.partial {
		c.lose(safeName(name))
	}
	clear(c.partial)
	if more := c.lostN - len(c.lost); more > 0 {
		return c.files, append(c.lost, fmt.Sprintf("and %d more", more))
	}
	return c.files, c.lost
}

// release gives back what the run's files took of the bound of all runs. They are the caller's from
// then on.
func (c *collector) release() {
	c.held.Add(-c.bytes)
	c.bytes = 0
}

// free returns name, or with a number behind its stem when the run has a file of that name. Case
// makes no other name: some file systems don't tell it apart.
func (c *collector) free(name string) string {
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for i := 2; c.names[strings.ToLower(name)]; i++ {
		name = fmt.Sprintf("%s-%d%s", stem, i, ext)
	}
	return name
}

// safeName makes a name that is a relative path within whatever directory it is put into: letters,
// digits, "-", "_" and ".", no part of it hidden, ".." or empty. A name that the guest's own code
// made is left as it is.
func safeName(name string) string {
	var parts []string
	for p := range strings.SplitSeq(strings.ReplaceAll(name, `\`, "/"), "/") {
		p = strings.TrimLeft(strings.Map(safeRune, p), ".")
		if p != "" {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return "file"
	}
	return strings.Join(parts, "/")
}

func safeRune(r rune) rune {
	if r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("-_.", r)) {
		return r
	}
	return '_'
}

// unknownMIME is the type of data of which nothing is known.
const unknownMIME = "application/octet-stream"

func safeMIME(s string) string {
	main, sub, found := strings.Cut(s, "/")
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"\<>`, r) }
	if !found || main == "" || sub == "" || len(s) > maxMIME || strings.ContainsFunc(s, odd) {
		return unknownMIME
	}
	return s
}
