package text

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"
)

// maxNear is how many similar names an error offers.
const maxNear = 3

// maxCompared bounds, in bytes, the names that are compared letter by letter: the effort grows with
// the square.
const maxCompared = 100

// Nearest returns the names most like the wrong one, best first, at most three, and none that is
// much less like it than the best. A name is like another one when it contains it, or when at most
// a third of the longer one's letters differ.
func Nearest(wrong string, names []string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	low := fold(wrong)
	if low == "" {
		return nil
	}
	letters := utf8.RuneCountInString(low)
	for _, name := range names {
		other := fold(name)
		d := distance(low, other)
		others := utf8.RuneCountInString(other)
		limit := max(letters, others) / 3
		if letters >= 3 && (strings.Contains(other, low) || others >= 3 && strings.Contains(low, other)) {
			d = min(d, limit)
		}
		if d <= limit {
			found = append(found, near{name, d})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	var out []string
	for _, f := range found[:min(len(found), maxNear)] {
		if f.distance <= found[0].distance+1 && !slices.Contains(out, f.name) {
			out = append(out, f.name)
		}
	}
	return out
}

// fold makes names that differ only in case, spaces, dots, dashes and underscores equal.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case ' ', '.', '-', '_':
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// distance returns how many letters to insert, delete or replace to make b of a. Long texts are not
// compared.
func distance(a, b string) int {
	if len(a) > maxCompared || len(b) > maxCompared {
		return max(len(a), len(b))
	}
	return levenshtein.Distance(a, b, nil)
}
