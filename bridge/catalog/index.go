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

// How much a word counts by where it stands in a tool.
const (
	inName       = 2.5
	inTitle      = 1.5
	inServer     = 3.0
	inSummary    = 3.0 // the first sentence of the description
	inRest       = 0.6 // what follows it
	inParameters = 1.2
	inNotes      = 0.2 // descriptions of parameters
)

const (
	maxWords     = 2000   // of one tool that are looked at
	maxIndexed   = 50_000 // of all tools of a server; beyond, a tool is found by the first words of its name
	maxNameWords = 10     // which are these
	maxQuery     = 20     // words of a query that are looked at
)

// How much a word of a query counts by how it is like a word of a tool.
const (
	likeSame    = 1.0
	likePrefix  = 0.7
	likeSynonym = 0.75

	minPrefix = 3 // letters that stand for a word that begins so
	minWhole  = 5 // letters of a word that stands for a longer one that begins so; a report is no repo
)

const (
	saturation = 3.0  // how soon further weight of a word counts no more: the k1 of BM25
	wholeName  = 1000 // what a tool gains whose name the query is: it comes before all others
)

// An index finds tools by what is said of them: their names, descriptions and parameters, and their
// servers' names. It ranks by BM25 over weighted places. What it is given is foreign: no text,
// schema or number of tools makes an index, or a search, larger than its bounds. The same tools
// always give the same order. It doesn't change and is safe for concurrent use.
type index struct {
	tools []document // by name within each server
	words map[string][]posting
}

// document is one tool that can be found.
type document struct {
	set  *Toolset
	tool upstream.Tool

	folded, full string // the name without and with its server's; see fold
}

// posting is a tool that has a word, by its place, and what the word weighs there.
type posting struct {
	tool   int
	weight float64
}

// newIndex returns the index of the tools of some servers. Its error is that of ctx, which it minds
// between tools.
func newIndex(ctx context.Context, sets []*Toolset) (*index, error) {
	x := &index{words: map[string][]posting{}}
	for _, set := range sets {
		left := maxIndexed
		byName := func(a, b upstream.Tool) int { return strings.Compare(a.Name, b.Name) }
		for _, t := range slices.SortedFunc(slices.Values(set.tools), byName) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			left -= x.add(set, t, max(min(left, maxWords), maxNameWords))
		}
	}
	return x, nil
}

// rarity returns how much a word counts that n tools have.
func (x *index) rarity(n int) float64 {
	return math.Log(1 + (float64(len(x.tools)-n)+0.5)/(float64(n)+0.5))
}

// add adds a tool by at most that many different words, and returns their number.
func (x *index) add(set *Toolset, t upstream.Tool, most int) int {
	d := document{set: set, tool: t, folded: fold(t.Name), full: fold(set.Server.Name + t.Name)}
	first, rest := summary(text.First(t.Description, maxText))
	names, notes := parameters(t.InputSchema)
	found := map[string]float64{}
	for _, place := range []struct {
		weight float64
		words  []string
	}{
		{inName, words(t.Name)}, {inTitle, words(t.Title)}, {inServer, words(set.Server.Name)},
		{inSummary, words(first)}, {inRest, words(rest)}, {inParameters, names}, {inNotes, notes},
	} {
		for _, word := range place.words {
			if _, has := found[word]; has || len(found) < most {
				found[word] += place.weight
			}
		}
	}
	for word, weight := range found {
		x.words[word] = append(x.words[word], posting{len(x.tools), weight})
	}
	x.tools = append(x.tools, d)
	return len(found)
}

// parameters returns the words of the names and of the descriptions of a tool's parameters.
func parameters(schema json.RawMessage) (names, notes []string) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(schema) > maxSchema || json.Unmarshal(schema, &s) != nil {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if len(names)+len(notes) > maxWords {
			break
		}
		names = append(names, words(name)...)
		var property struct {
			Description string `json:"description"`
		}
		if json.Unmarshal(s.Properties[name], &property) == nil {
			notes = append(notes, words(property.Description)...)
		}
	}
	return names, notes
}

// ranking keeps the latest index: to make one of 142 tools takes 20 ms, and code may search in a
// loop. It is safe for concurrent use; its zero value is ready.
type ranking struct {
	mu    sync.Mutex
	sets  []*Toolset
	index *index
}

// of returns the index of the tools of some servers: the one that is there while they stay the
// same.
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
