package bridge

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear is how many similar names an error offers.
const maxNear = 3

// maxCompared bounds, in bytes, the names that are compared letter by letter: the effort grows with the square.
const maxCompared = 100

// nearest returns the names most like the wrong one, best first, at most three, and none that is much
// less like it than the best.
func nearest(wrong string, names []string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	low := fold(wrong)
	for _, name := range names {
		other := fold(name)
		d := distance(low, other)
		limit := max(1, max(len(low), len(other))/3)
		if len(low) >= 3 && (strings.Contains(other, low) || len(other) >= 3 && strings.Contains(low, other)) {
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

// distance counts the letters to insert, delete, replace or swap with their neighbour to make b of a.
func distance(a, b string) int {
	if len(a) > maxCompared || len(b) > maxCompared {
		return max(len(a), len(b))
	}
	older, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], older[j-2]+1)
			}
		}
		older, row = row, next
	}
	return row[len(b)]
}
