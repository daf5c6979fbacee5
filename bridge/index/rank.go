package index

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// How much a word of a query counts by how it is like a word of a tool.
const (
	likeSame    = 1.0
	likePrefix  = 0.7
	likeSynonym = 0.75
	likeTypo    = 0.6
)

const (
	saturation = 3.0  // how soon further weight of a word counts no more: the k1 of BM25
	cover      = 0.7  // how much a tool loses that has only some of the query's words
	ownName    = 0.25 // what a tool gains whose name's words are all asked for
	wholeName  = 1000 // for a query that is a tool's name: before all others
	nameInside = 30   // for a query that has a tool's name, of several words, in it

	maxQuery    = 20 // words of a query that are looked at
	maxTypos    = 5  // of these, the first, that are compared with the words they are not
	maxPrefixed = 50 // words that begin like one of the query
	minPrefix   = 3  // letters that stand for a word that begins so
	minWhole    = 5  // letters of a word that stands for a longer one that begins so; a report is no repo
	minTypo     = 4
)

// fitsFrom is the Fit from which on a tool is taken to do what was asked for. Of the labelled queries one in
// twenty has no tool that good; of those for tools that aren't there three in four (TestNothingFits).
const fitsFrom = 0.34

// mostLooked is how many of the best hits Fitting looks at.
const mostLooked = 5

// Fitting reports whether any of the best hits does what was asked for. The others are only the nearest.
func Fitting(hits []Hit) bool {
	return slices.ContainsFunc(hits[:min(len(hits), mostLooked)], func(h Hit) bool { return h.Fit >= fitsFrom })
}

// Hit is a tool that fits a query: its part and its place there, as they were given, and how well it fits. A score means nothing
// beside those of another query.
type Hit struct {
	Part, Tool int
	Score      float64

	// Fit is how much of what the query asks for the tool has, from 0 to 1. Words that no tool has count
	// as much as the rarest that one has. Unlike Score it can be compared between queries.
	Fit  float64
	name string
}

// Search gives the tools that fit the query, best first. Its error is that of ctx, whose end it minds between words.
func (x *Index) Search(ctx context.Context, query string) ([]Hit, error) {
	query = text.First(query, maxText)
	asked := x.asked(query)
	scores, total, unknown := make([]float64, len(x.tools)), 0.0, 0.0
	matched := make([]float64, len(x.tools))
	meant := make([]map[string]bool, len(asked))
	for i, q := range asked {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		alike := x.alike(q, i < maxTypos)
		best, importance := x.best(alike)
		total += importance
		if len(alike) == 0 {
			unknown += x.rarity(0)
		}
		for tool, found := range best {
			scores[tool] += found.score
			matched[tool] += importance * found.like
		}
		meant[i] = map[string]bool{}
		for _, a := range alike {
			meant[i][a.word.text] = true
		}
	}
	whole, inside := fold(query), namesIn(query)
	var hits []Hit
	for i, t := range x.tools {
		s, fit := scores[i], 0.0
		if s > 0 {
			fit = matched[i] / (total + unknown)
			s *= 1 - cover + cover*matched[i]/total
			s *= 1 + ownName*t.named(meant)
		}
		switch {
		case whole != "" && (whole == t.folded || whole == t.full):
			s, fit = s+wholeName, 1
		case inside[t.folded] || inside[t.full]:
			s, fit = s+nameInside, 1
		}
		if s > 0 {
			hits = append(hits, Hit{t.part, t.tool, math.Round(s*1000) / 1000, fit, t.name})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Part, b.Part), strings.Compare(a.name, b.name))
	})
	return hits, nil
}

// named is which part of the words of a tool's own name is asked for.
func (w *toolWords) named(meant []map[string]bool) float64 {
	if len(w.own) == 0 {
		return 0
	}
	n := 0
	for _, word := range w.own {
		if slices.ContainsFunc(meant, func(m map[string]bool) bool { return m[word] }) {
			n++
		}
	}
	return float64(n) / float64(len(w.own))
}

// namesIn are the words of a query that look like names of several words, folded.
func namesIn(query string) map[string]bool {
	found := map[string]bool{}
	for w := range strings.FieldsSeq(query) {
		w = strings.Trim(w, ".,;:!?()\"'`")
		if len(words(w)) > 1 {
			found[fold(w)] = true
		}
	}
	return found
}

// asked are the words of a query, each of them once: with two of them as one where the tools have that, and one as two.
func (x *Index) asked(query string) []string {
	given := words(query)
	var out []string
	add := func(ws ...string) {
		for _, w := range ws {
			if len(out) < maxQuery && !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	for i := 0; i < len(given) && i < 2*maxQuery; i++ {
		w := given[i]
		if long := synonyms().all[w]; long != nil {
			add(long...)
			if x.words[w] == nil {
				continue
			}
		}
		if i+1 < len(given) {
			if one := stem(w + given[i+1]); x.words[one] != nil {
				add(one)
			}
		}
		if front, back, ok := x.halves(w); ok {
			add(front, back)
			continue
		}
		add(w)
	}
	return out
}

// halves are two words of the tools that a word of the query, which they don't have, is made of.
func (x *Index) halves(w string) (front, back string, ok bool) {
	if x.words[w] != nil || len(synonyms().any[w]) > 0 {
		return "", "", false
	}
	for i := minStem; i <= len(w)-minStem; i++ {
		front, back = stem(w[:i]), stem(w[i:])
		if x.words[front] != nil && x.words[back] != nil {
			return front, back, true
		}
	}
	return "", "", false
}

// candidate is a word of the tools that one of the query may mean.
type candidate struct {
	word *word
	like float64
}

// alike are the words of the tools that a word of the query may mean. Misspellings are looked for only where the word itself is
// nowhere, and if they are asked for.
func (x *Index) alike(q string, typos bool) []candidate {
	var found []candidate
	if w := x.words[q]; w != nil {
		found = append(found, candidate{w, likeSame})
	}
	found = append(found, x.prefixed(q)...)
	for _, s := range synonyms().any[q] {
		if w := x.words[s]; w != nil {
			found = append(found, candidate{w, likeSynonym})
		}
	}
	if len(found) > 0 || len(q) < minTypo || !typos {
		return found
	}
	in, most := letters(q), allowed(q)
	for _, w := range x.all {
		if similar(q, w.text, in, w.letters, most) {
			found = append(found, candidate{w, likeTypo})
		}
	}
	return found
}

// prefixed are the words that begin with q, and those that q begins with.
func (x *Index) prefixed(q string) []candidate {
	var found []candidate
	for n := minWhole; n < len(q); n++ {
		if w := x.words[q[:n]]; w != nil {
			found = append(found, candidate{w, likePrefix})
		}
	}
	if len(q) < minPrefix {
		return found
	}
	i, _ := slices.BinarySearchFunc(x.all, q, func(w *word, q string) int { return strings.Compare(w.text, q) })
	for ; i < len(x.all) && len(found) < maxPrefixed && strings.HasPrefix(x.all[i].text, q); i++ {
		if x.all[i].text != q {
			found = append(found, candidate{x.all[i], likePrefix})
		}
	}
	return found
}

// match is how a word of the query fits a tool.
type match struct{ score, like float64 }

// best is, for each tool that has one of the candidates, the score of the one that scores best there, and how important the word of
// the query is: as rare as the rarest candidate that is like it.
func (x *Index) best(alike []candidate) (map[int]match, float64) {
	found, importance := map[int]match{}, 0.0
	for _, c := range alike {
		importance = max(importance, c.like*c.word.rarity)
		for _, p := range c.word.in {
			s := c.like * c.word.rarity * p.weight * (saturation + 1) / (p.weight + saturation)
			if s > found[p.tool].score {
				found[p.tool] = match{s, c.like}
			}
		}
	}
	return found, importance
}
