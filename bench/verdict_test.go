package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRounds: each bridge has one call in each round, and the pause of a call of its own after the last one that was its.
func TestRounds(t *testing.T) {
	const tools = 3
	r := rounds{calls: make([]series, tools), previous: -1}
	var order []int
	for n := range 50 {
		r.turn(func(i int, apart time.Duration) (time.Duration, error) {
			want := between
			if len(order) > 0 && order[len(order)-1] == i {
				want = pause
			}
			if apart != want {
				t.Errorf("call %d after %v: a pause of %v, want %v", i, order, apart, want)
			}
			order = append(order, i)
			if n == 7 && i == 0 {
				return 0, errors.New("no")
			}
			return time.Duration(n+1)*time.Second + time.Duration(i)*time.Millisecond, nil // a machine that becomes slower and slower
		})
		if round := slices.Sorted(slices.Values(order[tools*n:])); !slices.Equal(round, []int{0, 1, 2}) {
			t.Fatalf("a round of %v", round)
		}
	}
	if len(r.more) != 49 || r.calls[0].failed != 1 || slices.ContainsFunc(r.more, func(d float64) bool { return math.Abs(d-2) > 1e-6 }) {
		t.Errorf("got the differences %v, %d failed", r.more, r.calls[0].failed)
	}
}

// TestGrowthIsJudgedByItsRange: a call of 3 ms makes 0.3 ms the bound.
func TestGrowthIsJudgedByItsRange(t *testing.T) {
	spread := func(n int, middle, width float64) []float64 {
		var all []float64
		for i := range n {
			all = append(all, middle+width*(float64(i)/float64(n-1)-0.5))
		}
		return all
	}
	for _, tt := range []struct {
		name string
		more []float64
		want Outcome
	}{
		{"nothing, in many rounds", spread(200, 0, 2), Met},
		{"nothing, in few rounds", spread(12, 0, 2), NotResolved},
		{"half a millisecond, in many rounds", spread(200, 0.5, 2), NotMet},
		{"half a millisecond, in few rounds", spread(12, 0.5, 4), NotResolved},
		{"no round", nil, NotResolved},
	} {
		var r Report
		(&rounds{calls: []series{{values: []float64{3, 3, 3}}}, more: tt.more}).judge(&r, 300)
		if v := r.Verdicts[0]; v.Outcome != tt.want || !strings.Contains(v.Target, "0.300 ms") {
			t.Errorf("%s: got %+v, want %q", tt.name, v, tt.want)
		}
	}
}

// TestMemoryIsJudgedByTheCall: what fewer calls leave behind is taken for what as many as the target has would.
func TestMemoryIsJudgedByTheCall(t *testing.T) {
	looks := func(each float64) []float64 { // MB that each look finds more than the one before, of a hundred
		var all []float64
		for i := range 100 {
			all = append(all, 40+each*float64(i)+float64(i%3-1)/20)
		}
		return all
	}
	for _, tt := range []struct {
		name     string
		looks    []float64
		all, own int
		want     Outcome
	}{
		{"flat", looks(0), 10_000, 7000, Met},
		{"a kilobyte a call", looks(0.07), 10_000, 7000, NotMet},
		{"200 bytes a call, of which the noise may be a part", looks(0.0135), 10_000, 7000, NotResolved},
		{"flat over a few calls", looks(0), 1805, 750, NotResolved},
		{"a little more after a few calls", looks(0.01), 1805, 750, NotResolved},
		{"much more after a few calls", looks(0.2), 1805, 750, NotMet},
		{"not looked at", nil, 10_000, 7000, NotResolved},
	} {
		var r Report
		r.steady(tt.looks, tt.all, tt.own)
		if v := r.Verdicts[0]; v.Outcome != tt.want || !strings.Contains(v.Target, "210 bytes a call") {
			t.Errorf("%s: got %+v, want %q", tt.name, v, tt.want)
		}
	}
}

// TestOutcomesAreShown: in the terminal's table, the page's, and JSON.
func TestOutcomesAreShown(t *testing.T) {
	var r Report
	r.judged("i", "no growth", "1.00 MB (-2.00 to 4.00)", NotResolved)
	var text, page, asJSON bytes.Buffer
	r.text(&text)
	r.markdown(&page)
	if err := r.json(&asJSON); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "targets: 0 met, 0 not met, 1 not resolved\nnot resolved (i) no growth: 1.00 MB") {
		t.Errorf("got %s", text.String())
	}
	if !strings.Contains(page.String(), "| (i) | no growth | 1.00 MB (-2.00 to 4.00) | not resolved |") {
		t.Errorf("got %s", page.String())
	}
	var back struct {
		Verdicts []struct{ Outcome string }
	}
	if err := json.Unmarshal(asJSON.Bytes(), &back); err != nil || back.Verdicts[0].Outcome != "not resolved" {
		t.Errorf("%v, %s", err, asJSON.String())
	}
}
