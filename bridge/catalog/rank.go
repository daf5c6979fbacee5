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

// fitsFrom is the fit from which on a tool is taken to do what was asked for. Of the labelled
// queries one in twenty has no tool that good; of those for tools that aren't there three in four
// (TestNothingFits).
const fitsFrom = 0.31

// cover is how much a tool loses that has only some of the query's words.
const cover = 0.7

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
	whole := fold(query)
	hits := make([]hit, 0, len(x.tools))
	for _, d := range x.tools {
		hits = append(hits, hit{set: d.set, tool: d.tool})
	}
	total := 0.0
	for _, q := range asked(query) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		best, importance := x.best(q)
		total += importance
		for tool, found := range best {
			hits[tool].score += found.score
			hits[tool].fit += importance * found.like
		}
	}
	for i, d := range x.tools {
		h := &hits[i]
		h.fit /= max(total, math.SmallestNonzeroFloat64)
		h.score *= 1 - cover + cover*h.fit
		if whole != "" && (whole == d.folded || whole == d.full) {
			h.score, h.fit = h.score+wholeName, 1
		}
		h.score = math.Round(h.score*1000) / 1000
	}
	hits = slices.DeleteFunc(hits, func(h hit) bool { return h.score <= 0 })
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return hits, nil
}

// asked returns the words of a query, each of them once.
func asked(query string) (out []string) {
	for _, w := range words(query) {
		if len(out) < maxQuery && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// match is how a word of the query fits a tool.
type match struct{ score, like float64 }

// best returns, for each tool with a word that is like one of the query, the match that scores
// best, and how important the word of the query is: as rare as the rarest word that is like it.
func (x *index) best(q string) (map[int]match, float64) {
	found, importance := map[int]match{}, 0.0
	meanings := synonyms()[q]
	for word, in := range x.words {
		like := alike(q, word, meanings)
		if like == 0 {
			continue
		}
		weight := like * x.rarity(len(in))
		importance = max(importance, weight)
		for _, p := range in {
			m := match{weight * p.weight * (saturation + 1) / (p.weight + saturation), like}
			if old := found[p.tool]; m.score > old.score || m.score == old.score && like > old.like {
				found[p.tool] = m
			}
		}
	}
	if importance == 0 {
		importance = x.rarity(0)
	}
	return found, importance
}

// alike returns how much a word of the query is like one of a tool; 0 for not at all.
func alike(q, word string, meanings []string) float64 {
	switch {
	case q == word:
		return likeSame
	case slices.Contains(meanings, word):
		return likeSynonym
	case len(q) >= minPrefix && strings.HasPrefix(word, q), len(word) >= minWhole && strings.HasPrefix(q, word):
		return likePrefix
	}
	return 0
}
