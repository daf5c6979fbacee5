package sandbox

import (
	"slices"
	"testing"
)

// TestLine: a run that comes back to the line has its turn, and when a guest can't be started it is the last of those that counted on
// one who is let go; who waits for a container as well stays.
func TestLine(t *testing.T) {
	turns := func(b *standby) (list []uint64) {
		for _, p := range b.line {
			list = append(list, p.turn)
		}
		return list
	}
	tests := []struct {
		name     string
		entered  []place
		starting int // left
		stay     []uint64
	}{
		{"one of two", []place{{turn: 1, counts: true}, {turn: 2, counts: true}}, 1, []uint64{1}},
		{"one that was here before", []place{{turn: 2, counts: true}, {turn: 1, counts: true}}, 1, []uint64{1}},
		{"none is left", []place{{turn: 1, counts: true}, {turn: 2}, {turn: 3, counts: true}}, 0, []uint64{2}},
		{"one who doesn't count on it", []place{{turn: 4, counts: true}, {turn: 3}, {turn: 5}}, 1, []uint64{3, 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &standby{}
			var entered []*place
			for _, p := range tt.entered {
				entered = append(entered, b.enter(p.turn, p.counts))
			}
			if got := turns(b); !slices.IsSorted(got) {
				t.Errorf("the line is %v", got)
			}
			b.starting = tt.starting
			b.release()
			if got := turns(b); !slices.Equal(got, tt.stay) {
				t.Errorf("%v stay, want %v", got, tt.stay)
			}
			for _, p := range entered {
				if told := len(p.ready) == 1; told == slices.Contains(tt.stay, p.turn) {
					t.Errorf("run %d was told: %v", p.turn, told)
				}
			}
		})
	}
}
