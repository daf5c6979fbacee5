package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
)

const (
	manyPrints = "line = 'x' * 99\nfor _ in range(100_000): print(line)" // ten megabytes
	onePrint   = "print('x' * 9_999_999)"
	noisePrint = "import base64, os\nprint(base64.b64encode(os.urandom(7_500_000)).decode())" // as much that hardly compresses
	flat       = 10                                                                           // percent; a difference of less is the garbage collector's

	// keptOutputs is how many calls come before the memory is looked at: twice as many as it takes until the bridge has as
	// much output for read_output as it keeps of all runs together, 64 MiB of at most 4 MiB each. Until then its memory must grow.
	keptOutputs = 32
)

// outputs is part g: ten megabytes of output, and what they do to the bridge's memory.
func (s *suite) outputs(ctx context.Context) (err error) {
	if err := s.readyEngine(ctx); err != nil {
		return err
	}
	c, err := s.warm(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := s.fill(ctx, c); err != nil {
		return err
	}
	var many, one, bare series
	for range s.scale.outputs {
		if !sleep(ctx, pause) {
			break
		}
		s.printed(ctx, c, manyPrints, &many)
		sleep(ctx, pause)
		s.printed(ctx, c, onePrint, &one)
		bare.took(s.exchange(ctx, manyPrints))
	}
	s.report.figure("g", "run_python of 10 MB in 100,000 prints, 300 ms after the last", false, "ms", many)
	s.report.figure("g", "run_python of 10 MB in one print, 300 ms after the last", false, "ms", one)
	s.report.figure("g", "the 100,000 prints in a waiting guest, no bridge", true, "ms", bare)
	s.report.verdict("g", "10 MB of output ≤ 0.4 s, 100,000 prints, p50", median(many.values), "ms", 400)
	return nil
}

// fill looks at the memory of a bridge after each of many calls that print 10 MB, back to back, once it keeps all that it ever keeps. What
// is printed is noise: the bridge compresses what it keeps, and of ten million times the same letter little would be left.
// It goes up and down with the garbage collector's rounds, so that it takes many looks to tell whether it stays.
func (s *suite) fill(ctx context.Context, c *client) error {
	before, err := rss(c.pid())
	if err != nil {
		return err
	}
	var calls, after series
	for i := range keptOutputs + s.scale.flat {
		if ctx.Err() != nil {
			break
		}
		s.printed(ctx, c, noisePrint, &calls)
		now, err := rss(c.pid())
		if err != nil {
			return err
		}
		if i >= keptOutputs {
			after.add(now)
		}
	}
	most, err := peak(c.pid())
	if err != nil {
		return err
	}
	s.report.figure("g", "run_python of 10 MB of noise in one print, one right after the other", false, "ms", calls)
	s.report.figure("g", "the bridge's memory before all these", false, "MB", single(before))
	s.report.figure("g", fmt.Sprintf("the bridge's memory after each but the first %d", keptOutputs), false, "MB", after)
	s.report.figure("g", "its peak since it was started", false, "MB", single(most))
	more, of := growthOf(after.values)
	s.report.verdict("g", fmt.Sprintf("flat memory: in the last quarter of %d calls it is what it was in the second, within %d %%, after %d others", s.scale.flat, flat, keptOutputs), 100*more/of, "%", flat)
	return nil
}

// printed is a call whose result is cut in its middle and says so.
func (s *suite) printed(ctx context.Context, c *client, code string, to *series) {
	out, took, err := c.python(ctx, code, "", noServers)
	if err == nil && !strings.Contains(out, "left out here") {
		err = fmt.Errorf("of 10 MB nothing was left out: %d bytes", len(out))
	}
	to.took(took, err)
}

// growthOf is how much more the last quarter is than the second, by their medians, and what the second is. The first is the warming up.
// Of fewer than four values it is not a number.
func growthOf(values []float64) (more, of float64) {
	q := len(values) / 4
	if q == 0 {
		return math.NaN(), math.NaN()
	}
	of = median(values[q : 2*q])
	return median(values[len(values)-q:]) - of, of
}

// lastQuarterAboveSecond is the first of these with its range. It has none of fewer than four values.
func lastQuarterAboveSecond(values []float64) difference {
	q := len(values) / 4
	return differenceOfMedians(values[len(values)-q:], values[q:2*q])
}
