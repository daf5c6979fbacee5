package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// series is what was measured of one thing, in the unit of its figure.
type series struct {
	values []float64
	failed int
	first  error // of the failures
}

// join adds all of another.
func (s *series) join(o series) {
	s.values = append(s.values, o.values...)
	if s.failed += o.failed; s.first == nil {
		s.first = o.first
	}
}

func (s *series) add(v float64) { s.values = append(s.values, v) }

// took adds a duration in milliseconds, or counts a failure.
func (s *series) took(d time.Duration, err error) {
	if err != nil {
		s.fail(err)
		return
	}
	s.add(milliseconds(d))
}

func (s *series) fail(err error) {
	if s.failed++; s.first == nil {
		s.first = err
	}
}

// single is what was measured once, or nothing where that is no number: of no calls there is no time for each.
func single(v float64) series {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return series{}
	}
	return series{values: []float64{v}}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quantile is the smallest value that at least the share q of all is not above; NaN of none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// difference is what was measured of one, with the range in which 95 of 100 lie when the values are drawn anew from what was measured
// (bootstrap). A range with zero in it means that nothing could be measured. Of no values all are not a number.
type difference struct{ middle, low, high float64 }

// differenceOfMedians is that of a above b.
func differenceOfMedians(a, b []float64) difference {
	return drawn(func(draw func([]float64) []float64) float64 { return median(draw(a)) - median(draw(b)) })
}

// medianDifference is that of differences that were measured one by one, both sides of each within moments.
func medianDifference(all []float64) difference {
	return drawn(func(draw func([]float64) []float64) float64 { return median(draw(all)) })
}

// resamples is how often drawn draws.
const resamples = 1000

// drawn is what of makes of the values themselves, and the range of what it makes of them drawn anew. The draws are the same at each
// call.
func drawn(of func(draw func([]float64) []float64) float64) difference {
	dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // statistics, not secrets
	again := func(from []float64) []float64 {
		values := make([]float64, len(from))
		for i := range values {
			values[i] = from[dice.IntN(len(from))]
		}
		return values
	}
	all := make([]float64, resamples)
	for i := range all {
		all[i] = of(again)
	}
	return difference{of(func(values []float64) []float64 { return values }), quantile(all, 0.025), quantile(all, 0.975)}
}
