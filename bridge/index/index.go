// Package index finds tools by what is said of them: their names, descriptions and parameters, and their servers. It ranks by BM25 over
// weighted fields, takes plurals, synonyms, abbreviations and misspelt words for what they stand for, and puts a tool that is asked
// for by its name first.
//
// What it is given is foreign: no text, schema or number of tools makes an index, or a search, larger than its bounds. The same tools
// always give the same order. It knows nothing of servers but their names.
package index

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// How much a word counts by where it stands, and after how many words it begins to count less.
const (
	inName = iota
	inTitle
	inServer
	inSummary // the first sentence of the description
	inRest    // what follows it
	inParameters
	inNotes // descriptions of parameters
	fields
)

var (
	weights = [fields]float64{inName: 2.5, inTitle: 1.5, inServer: 3, inSummary: 3, inRest: 0.6, inParameters: 1.2, inNotes: 0.2}
	lengths = [fields]float64{inName: 3, inTitle: 4, inServer: 2, inSummary: 9, inRest: 40, inParameters: 6, inNotes: 40}
)

const (
	maxWords     = 2000    // of one tool that are looked at
	maxIndexed   = 50_000  // of all tools of a server; beyond, a tool is found by the first words of its name
	maxNameWords = 10      // which are these
	maxSchema    = 1 << 20 // bytes of a schema that is looked at
	commonName   = 0.8     // of a server's tools that have a word in their names make it a word of the server
	minCommon    = 3       // tools, for that to be told
)

// Tool is what is said of one tool. The schema need not be one.
type Tool struct {
	Name, Title, Description string
	InputSchema              json.RawMessage
}

// Part is the tools of one server by their words. It doesn't change.
type Part struct {
	server string
	tools  []toolWords
}

// toolWords is one tool by the weights of its words.
type toolWords struct {
	name, folded, full string // the name; folded without and with its server's
	weights            map[string]float64
	own                []string // the name's words that set it apart from the server's other tools
	counts             map[string]*[fields]float64
	totals             [fields]float64
	room               int // for further words
}

// NewPart reads what a server's tools say of themselves.
func NewPart(server string, tools []Tool) *Part {
	p := &Part{server: server, tools: make([]toolWords, 0, len(tools))}
	common := commonWords(tools)
	left := maxIndexed
	for _, t := range tools {
		w := toolWords{name: t.Name, folded: fold(t.Name), full: fold(server + t.Name), counts: map[string]*[fields]float64{},
			room: max(min(left, maxWords), maxNameWords)}
		for _, word := range words(t.Name) {
			if common[word] {
				w.add(inServer, word)
			} else {
				w.add(inName, word)
				w.own = append(w.own, word)
			}
		}
		w.add(inServer, words(server)...)
		w.add(inTitle, words(t.Title)...)
		first, rest := summary(text.First(t.Description, maxText))
		w.add(inSummary, words(first)...)
		w.add(inRest, words(rest)...)
		w.addParameters(t.InputSchema)
		w.weigh()
		left -= len(w.weights)
		p.tools = append(p.tools, w)
	}
	return p
}

// commonWords are those in the names of nearly all of a server's tools: they say which server it is, not which tool.
func commonWords(tools []Tool) map[string]bool {
	counts := map[string]int{}
	for _, t := range tools {
		in := words(t.Name)
		slices.Sort(in)
		for _, w := range slices.Compact(in) {
			counts[w]++
		}
	}
	common := map[string]bool{}
	for w, n := range counts {
		common[w] = len(tools) >= minCommon && float64(n) >= commonName*float64(len(tools))
	}
	return common
}

func (w *toolWords) add(field int, found ...string) {
	for _, word := range found {
		w.totals[field]++
		if w.counts[word] == nil {
			if len(w.counts) >= w.room {
				continue
			}
			w.counts[word] = new([fields]float64)
		}
		w.counts[word][field]++
	}
}

func (w *toolWords) addParameters(schema json.RawMessage) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(schema) > maxSchema || json.Unmarshal(schema, &s) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if len(w.counts) >= w.room {
			return
		}
		w.add(inParameters, words(name)...)
		var property struct {
			Description string `json:"description"`
		}
		if json.Unmarshal(s.Properties[name], &property) == nil {
			w.add(inNotes, words(property.Description)...)
		}
	}
}

// shorten is how much a field that is longer than usual takes from the weight of its words: the b of BM25.
const shorten = 0.6

// weigh makes the weights of the counts, which it then drops.
func (w *toolWords) weigh() {
	w.weights = make(map[string]float64, len(w.counts))
	for word, counts := range w.counts {
		sum := 0.0
		for f, n := range counts {
			sum += weights[f] * n / (1 - shorten + shorten*w.totals[f]/lengths[f])
		}
		w.weights[word] = sum
	}
	w.counts = nil
}

// Index is the tools of several servers, to be searched. It doesn't change and is safe for concurrent use.
type Index struct {
	tools []place
	words map[string]*word
	all   []*word // sorted
}

// rarity is how much a word counts that n tools have.
func (x *Index) rarity(n int) float64 {
	return math.Log(1 + (float64(len(x.tools)-n)+0.5)/(float64(n)+0.5))
}

// place is where a tool is.
type place struct {
	part, tool int
	*toolWords
	server string
}

// word is one word of all tools.
type word struct {
	text    string
	letters uint64
	in      []posting
	rarity  float64
}

// posting is a tool that has a word, by its place, and what the word weighs there.
type posting struct {
	tool   int
	weight float64
}

// Join makes one index of several servers' parts. Its error is that of ctx, which it minds between tools.
func Join(ctx context.Context, parts []*Part) (*Index, error) {
	x := &Index{words: map[string]*word{}}
	for i, p := range parts {
		for j := range p.tools {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			t := &p.tools[j]
			for text, weight := range t.weights {
				w := x.words[text]
				if w == nil {
					w = &word{text: text, letters: letters(text)}
					x.words[text] = w
				}
				w.in = append(w.in, posting{len(x.tools), weight})
			}
			x.tools = append(x.tools, place{i, j, t, p.server})
		}
	}
	for _, text := range slices.Sorted(maps.Keys(x.words)) {
		w := x.words[text]
		w.rarity = x.rarity(len(w.in))
		x.all = append(x.all, w)
	}
	return x, nil
}
