package catalog

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
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

	maxQuery    = 20 // words of a query that are looked at
	maxTypos    = 5  // of these, the first, that are compared with the words they are not
	maxPrefixed = 50 // words that begin like one of the query
	minPrefix   = 3  // letters that stand for a word that begins so
	minWhole    = 5  // letters of a word that stands for a longer one that begins so; a report is no repo
	minTypo     = 4
)

// fitsFrom is the fit from which on a tool is taken to do what was asked for. Of the labelled
// queries one in twenty has no tool that good; of those for tools that aren't there three in four
// (TestNothingFits).
const fitsFrom = 0.34

// mostLooked is how many of the best hits fitting looks at.
const mostLooked = 5

// fitting reports whether any of the best hits does what was asked for. The others are only the
// nearest.
func fitting(hits []hit) bool {
	return slices.ContainsFunc(hits[:min(len(hits), mostLooked)], func(h hit) bool { return h.fit >= fitsFrom })
}

// hit is a tool that fits a query, and how well. A score means nothing beside those of another
// query.
type hit struct {
	set   *Toolset
	tool  upstream.Tool
	score float64

	// fit is how much of what the query asks for the tool has, from 0 to 1. Words that no tool has
	// count as much as the rarest that one has. Unlike score it can be compared between queries.
	fit float64
}

// search returns the tools that fit the query, best first. Its error is that of ctx, whose end it
// minds between words.
func (x *index) search(ctx context.Context, query string) ([]hit, error) {
	query = text.First(query, maxText)
	asked := x.asked(query)
	scores, matched := make([]float64, len(x.tools)), make([]float64, len(x.tools))
	total, unknown := 0.0, 0.0
	meant := map[string]bool{}
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
		for _, a := range alike {
			meant[a.word.text] = true
		}
	}
	whole := fold(query)
	var hits []hit
	for i, d := range x.tools {
		s, fit := scores[i], 0.0
		if s > 0 {
			fit = matched[i] / (total + unknown)
			s *= 1 - cover + cover*matched[i]/total
			s *= 1 + ownName*share(d.own, meant)
		}
		if whole != "" && (whole == d.folded || whole == d.full) {
			s, fit = s+wholeName, 1
		}
		if s > 0 {
			hits = append(hits, hit{d.set, d.tool, math.Round(s*1000) / 1000, fit})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return hits, nil
}

// share returns which part of some words is among others.
func share(words []string, among map[string]bool) float64 {
	n := 0
	for _, w := range words {
		if among[w] {
			n++
		}
	}
	return float64(n) / float64(max(len(words), 1))
}

// asked returns the words of a query, each of them once, with two of them also as one where the
// tools have that, and abbreviations also written out.
func (x *index) asked(query string) []string {
	given := words(query)
	var out []string
	add := func(ws ...string) {
		for _, w := range ws {
			if len(out) < maxQuery && !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	for i, w := range given[:min(len(given), 2*maxQuery)] {
		long := synonyms().all[w]
		add(long...)
		if i+1 < len(given) {
			if one := stem(w + given[i+1]); x.words[one] != nil {
				add(one)
			}
		}
		if long == nil || x.words[w] != nil {
			add(w)
		}
	}
	return out
}

// candidate is a word of the tools that one of the query may mean.
type candidate struct {
	word *word
	like float64
}

// alike returns the words of the tools that a word of the query may mean. It looks for misspellings
// only where the word itself is nowhere, and if they are asked for.
func (x *index) alike(q string, typos bool) []candidate {
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
	for _, w := range x.all {
		if similar(q, w.text) {
			found = append(found, candidate{w, likeTypo})
		}
	}
	return found
}

// similar reports whether one word may be a misspelling of the other.
func similar(a, b string) bool {
	most := 1 + len(a)/8
	return max(len(a)-len(b), len(b)-len(a)) <= most && text.Distance(a, b) <= most
}

// prefixed returns the words that begin with q, and those that q begins with.
func (x *index) prefixed(q string) []candidate {
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

// best returns, for each tool that has one of the candidates, the score of the one that scores best
// there, and how important the word of the query is: as rare as the rarest candidate that is like
// it.
func (x *index) best(alike []candidate) (map[int]match, float64) {
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
