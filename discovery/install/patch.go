package install

import (
	"bytes"
	"slices"
)

// A patch puts other bytes in the place of those from start to end of a text.
type patch struct {
	start, end int
	with       []byte
}

// patched returns a text with patches, which are in its order.
func patched(text []byte, all []patch) (made []byte) {
	last := 0
	for _, p := range all {
		made = slices.Concat(made, text[last:p.start], p.with)
		last = p.end
	}
	return append(made, text[last:]...)
}

// shift has a patch of one text be about the next one, which differs elsewhere. It returns false if
// that is in the same place.
func (p *patch) shift(from, to []byte) bool {
	first, last := common(from, to)
	switch grown := len(to) - len(from); {
	case last <= p.start:
		p.start, p.end = p.start+grown, p.end+grown
	case first < p.end:
		return false
	}
	return true
}

// common returns where in a the part begins and ends that differs from b.
func common(a, b []byte) (start, end int) {
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	same := 0
	for same < len(a)-start && same < len(b)-start && a[len(a)-1-same] == b[len(b)-1-same] {
		same++
	}
	return start, len(a) - same
}

// patches returns what makes b of a: by runs of lines that differ, in these by runs of members, and
// of these what differs.
func patches(a, b []byte) []patch {
	return patchesBy("\n", a, b, func(a, b []byte) []patch {
		return patchesBy(",{}[]", a, b, func(a, b []byte) []patch {
			start, end := common(a, b)
			return []patch{{start, end, b[start : len(b)-(len(a)-end)]}}
		})
	})
}

// patchesBy has within find what makes one run of another, of parts that end in one of some bytes.
func patchesBy(ends string, a, b []byte, within func(a, b []byte) []patch) (all []patch) {
	x, y := partsOf(a, ends), partsOf(b, ends)
	at, i, j := 0, 0, 0 // at is where x[i] begins
	for _, same := range append(sameLines(x, y), [2]int{len(x), len(y)}) {
		old, with := bytes.Join(x[i:same[0]], nil), bytes.Join(y[j:same[1]], nil)
		if !bytes.Equal(old, with) {
			for _, p := range within(old, with) {
				all = append(all, patch{at + p.start, at + p.end, p.with})
			}
		}
		at += len(old)
		if i, j = same[0]+1, same[1]+1; i <= len(x) {
			at += len(x[i-1])
		}
	}
	return all
}

// partsOf splits a text behind each of some bytes.
func partsOf(text []byte, ends string) (parts [][]byte) {
	for len(text) > 0 {
		n := bytes.IndexAny(text, ends) + 1
		if n == 0 {
			n = len(text)
		}
		parts, text = append(parts, text[:n]), text[n:]
	}
	return parts
}

// mostLines bounds how many lines may differ for sameLines to find those that don't.
const mostLines = 500

// sameLines returns the numbers of lines that two texts share, in their order: the most that there
// are, by Myers' algorithm. It returns none if too many lines differ.
func sameLines(x, y [][]byte) (all [][2]int) {
	reached := make([]int, 2*mostLines+3) // in x, on each diagonal
	var steps [][]int
	on := func(v []int, diagonal int) *int { return &v[diagonal+mostLines+1] }
	from := func(v []int, d, k int) int { // the diagonal that the d-th step comes from
		if k == -d || k != d && *on(v, k-1) < *on(v, k+1) {
			return k + 1
		}
		return k - 1
	}
	for d := 0; d <= mostLines; d++ {
		steps = append(steps, slices.Clone(reached))
		for k := -d; k <= d; k += 2 {
			i := *on(reached, from(reached, d, k))
			if from(reached, d, k) < k {
				i++
			}
			for i < len(x) && i-k < len(y) && bytes.Equal(x[i], y[i-k]) {
				i++
			}
			if *on(reached, k) = i; i >= len(x) && i-k >= len(y) {
				return sharedBy(steps, len(x), len(y), from, on)
			}
		}
	}
	return nil
}

// sharedBy goes the steps of sameLines back.
func sharedBy(steps [][]int, i, j int, from func([]int, int, int) int,
	on func([]int, int) *int) (all [][2]int) {
	for d := len(steps) - 1; d >= 0; d-- {
		k := from(steps[d], d, i-j)
		x := *on(steps[d], k)
		for i > x && j > x-k {
			i, j = i-1, j-1
			all = append(all, [2]int{i, j})
		}
		i, j = x, x-k
	}
	slices.Reverse(all)
	return all
}
