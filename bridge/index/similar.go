package index

import "math/bits"

// letters is the set of a word's letters and digits, one bit each, by which most words that are no misspelling are told apart at once.
func letters(w string) uint64 {
	var m uint64
	for i := range len(w) {
		m |= 1 << (w[i] & 63)
	}
	return m
}

// allowed is how many letters of a word may be wrong.
func allowed(w string) int { return 1 + len(w)/8 }

// similar says whether one word may be a misspelling of the other: by so many letters inserted, left out, replaced or swapped with
// their neighbour. The sets are those of letters.
func similar(a, b string, inA, inB uint64, most int) bool {
	if d := len(a) - len(b); d > most || -d > most || bits.OnesCount64(inA^inB) > 2*most {
		return false
	}
	return distance(a, b) <= most
}

// distance counts the bytes to insert, leave out or replace, and the neighbours to swap, to make b of a: the restricted
// Damerau-Levenshtein distance. Its effort grows with the product of the lengths.
func distance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
