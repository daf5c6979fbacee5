package main

import (
	"fmt"
	"math"
	"strings"
)

// Verdict is a target and what was measured for it.
type Verdict struct {
	Part     string  `json:"part"`
	Target   string  `json:"target"`
	Measured string  `json:"measured"`
	Outcome  Outcome `json:"outcome"`
}

// Outcome is what the figures say of a target. No outcome makes a run fail.
type Outcome string

// Too few rounds, or too much noise in them, are never a target met: what they say is that they don't say.
const (
	Met         Outcome = "met"
	NotMet      Outcome = "not met"
	NotResolved Outcome = "not resolved" // the range that was measured reaches to both sides of the bound, or nothing was measured
)

var outcomes = []Outcome{Met, NotMet, NotResolved}

// verdict adds a target: at most bound.
func (r *Report) verdict(part, target string, measured float64, unit string, bound float64) {
	r.judged(part, target, number(measured)+" "+unit, outcomeOf(measured, measured <= bound))
}

// atLeast is verdict for what is to be no less than a bound.
func (r *Report) atLeast(part, target string, measured float64, unit string, bound float64) {
	r.judged(part, target, number(measured)+" "+unit, outcomeOf(measured, measured >= bound))
}

func (r *Report) judged(part, target, measured string, o Outcome) {
	r.Verdicts = append(r.Verdicts, Verdict{part, target, measured, o})
}

func outcomeOf(measured float64, met bool) Outcome {
	switch {
	case math.IsNaN(measured):
		return NotResolved
	case met:
		return Met
	}
	return NotMet
}

// within says whether a difference is at most high: met where the whole of its range is, not met where the whole of its range is above
// low, which is high or what lies below it.
func (d difference) within(low, high float64) Outcome {
	switch {
	case d.high <= high:
		return Met
	case d.low > low:
		return NotMet
	}
	return NotResolved // of nothing, too: no number is above or below another
}

// text is the difference with its range.
func (d difference) text(unit string) string {
	return fmt.Sprintf("%s %s (%s to %s)", number(d.middle), unit, number(d.low), number(d.high))
}

// tally is how many targets have which outcome.
func (r *Report) tally() string {
	counts := map[Outcome]int{}
	for _, v := range r.Verdicts {
		counts[v.Outcome]++
	}
	var said []string
	for _, o := range outcomes {
		said = append(said, fmt.Sprintf("%d %s", counts[o], o))
	}
	return strings.Join(said, ", ")
}
