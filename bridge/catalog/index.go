package catalog

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// Where a word of a tool stands.
const (
	inName = iota
	inTitle
	inServer
	inSummary // the first sentence of the description
	inRest    // what follows it
	inParameters
	inNotes // descriptions of parameters
	places
)

// How much a word counts by where it stands, and after how many words it begins to count less.
var (
	weights = [places]float64{inName: 2.5, inTitle: 1.5, inServer: 3, inSummary: 3, inRest: 0.6, inParameters: 1.2, inNotes: 0.2}
	lengths = [places]float64{inName: 3, inTitle: 4, inServer: 2, inSummary: 9, inRest: 40, inParameters: 6, inNotes: 40}
)

const (
	shorten = 0.6 // how much a place that is longer than usual takes from the weight of its words: the b of BM25

	maxWords     = 2000   // of one tool that are looked at
	maxIndexed   = 50_000 // of all tools of a server; beyond, a tool is found by the first words of its name
	maxNameWords = 10     // which are these
)

// An index finds tools by what is said of them: their names, descriptions and parameters, and their
// servers' names. It ranks by BM25 over weighted places. What it is given is foreign: no text,
// schema or number of tools makes an index, or a search, larger than its bounds. The same tools
// always give the same order. It doesn't change and is safe for concurrent use.
type index struct {
	tools []document // by name within each server
	words map[string]*word
	all   []*word // sorted
}

// document is one tool by its words.
type document struct {
	set  *Toolset
	tool upstream.Tool

	folded, full string // the name without and with its server's; see fold
	own          []string

	counts map[string]*[places]float64 // until it is weighed
	totals [places]float64
	room   int // for further words
}

// word is one word of all tools.
type word struct {
	text   string
	in     []posting
	rarity float64
}

// posting is a tool that has a word, by its place, and what the word weighs there.
type posting struct {
	tool   int
	weight float64
}

// newIndex returns the index of the tools of some servers. Its error is that of ctx, which it minds
// between tools.
func newIndex(ctx context.Context, sets []*Toolset) (*index, error) {
	x := &index{words: map[string]*word{}}
	for _, set := range sets {
		left := maxIndexed
		byName := func(a, b upstream.Tool) int { return strings.Compare(a.Name, b.Name) }
		for _, t := range slices.SortedFunc(slices.Values(set.tools), byName) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			d := newDocument(set, t, max(min(left, maxWords), maxNameWords))
			left -= len(d.counts)
			x.add(d)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(x.words)) {
		w := x.words[text]
		w.rarity = x.rarity(len(w.in))
		x.all = append(x.all, w)
	}
	return x, nil
}

// rarity returns how much a word counts that n tools have.
func (x *index) rarity(n int) float64 {
	return math.Log(1 + (float64(len(x.tools)-n)+0.5)/(float64(n)+0.5))
}

// add adds a document with what its words weigh, and drops its counts.
func (x *index) add(d *document) {
	for text, counts := range d.counts {
		weight := 0.0
		for place, n := range counts {
			weight += weights[place] * n / (1 - shorten + shorten*d.totals[place]/lengths[place])
		}
		w := x.words[text]
		if w == nil {
			w = &word{text: text}
			x.words[text] = w
		}
		w.in = append(w.in, posting{len(x.tools), weight})
	}
	d.counts = nil
	x.tools = append(x.tools, *d)
}

func newDocument(set *Toolset, t upstream.Tool, room int) *document {
	d := &document{set: set, tool: t, folded: fold(t.Name), full: fold(set.Server.Name + t.Name), own: words(t.Name),
		counts: map[string]*[places]float64{}, room: room}
	d.count(inName, d.own)
	d.count(inServer, words(set.Server.Name))
	d.count(inTitle, words(t.Title))
	first, rest := summary(text.First(t.Description, maxText))
	d.count(inSummary, words(first))
	d.count(inRest, words(rest))
	d.countParameters(t.InputSchema)
	return d
}

func (d *document) count(place int, found []string) {
	for _, w := range found {
		d.totals[place]++
		if d.counts[w] == nil {
			if len(d.counts) >= d.room {
				continue
			}
			d.counts[w] = new([places]float64)
		}
		d.counts[w][place]++
	}
}

func (d *document) countParameters(schema json.RawMessage) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(schema) > maxSchema || json.Unmarshal(schema, &s) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if len(d.counts) >= d.room {
			return
		}
		d.count(inParameters, words(name))
		var property struct {
			Description string `json:"description"`
		}
		if json.Unmarshal(s.Properties[name], &property) == nil {
			d.count(inNotes, words(property.Description))
		}
	}
}

// ranking keeps the latest index. It is safe for concurrent use; its zero value is ready.
type ranking struct {
	mu    sync.Mutex
	sets  []*Toolset
	index *index
}

// of returns the index of the tools of some servers: the one that is there while they stay the same.
func (r *ranking) of(ctx context.Context, sets []*Toolset) (*index, error) {
	r.mu.Lock()
	x := r.index
	if !slices.Equal(r.sets, sets) {
		x = nil
	}
	r.mu.Unlock()
	if x != nil {
		return x, nil
	}
	x, err := newIndex(ctx, sets)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sets, r.index = sets, x
	return x, nil
}
