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

// resamples is how often differenceOfMedians draws.
const resamples = 1000

// differenceOfMedians is that of a above b, with the range in which 95 of 100 differences lie when both are drawn anew from what was
// measured (bootstrap). A range with zero in it means that nothing could be measured. The draws are the same at each call.
func differenceOfMedians(a, b []float64) (difference, low, high float64) {
	if len(a) == 0 || len(b) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // statistics, not secrets
	draw := func(from []float64) float64 {
		drawn := make([]float64, len(from))
		for i := range drawn {
			drawn[i] = from[dice.IntN(len(from))]
		}
		return median(drawn)
	}
	all := make([]float64, resamples)
	for i := range all {
		all[i] = draw(a) - draw(b)
	}
	return median(a) - median(b), quantile(all, 0.025), quantile(all, 0.975)
}
