package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Times on two quiet cores with rootless podman, rounded, for telling who waits how long it may take. No figure depends on them.
const (
	oneProcess = 60 * time.Millisecond  // two bridges that answer initialize and end, and what stands beside them
	oneStart   = 110 * time.Millisecond // a container, until its guest is ready or podman run has ended
	oneEnd     = 80 * time.Millisecond  // until podman has removed it
	oneFirst   = 1500 * time.Millisecond
	oneOutput  = 1500 * time.Millisecond
	oneBurst   = 3500 * time.Millisecond
	oneDocker  = 700 * time.Millisecond // a call and docker run, without a pause
	perLoaded  = 75 * time.Millisecond  // a call, when as many are made as can be
	oneWarm    = 10 * time.Millisecond  // a call that finds a container waiting
	oneBusy    = 300 * time.Millisecond // one that computes
	oneServer  = 200 * time.Millisecond // until its tools are known
	leastPart  = 5 * time.Second
)

// takes is about how long a part takes.
func (c scale) takes(part string) time.Duration {
	times := func(n int, each time.Duration) time.Duration { return time.Duration(n) * each }
	d := leastPart // starting and ending a bridge or two
	switch part {
	case "a":
		d += times(c.starts, oneProcess)
	case "b":
		d += times(c.first, oneFirst)
	case "c":
		bare := oneStart + settle + oneEnd
		d += times(c.warm+c.governed, pause+oneWarm) + times(c.bare, bare) + times(c.podman, oneStart) + times(c.bursts, oneBurst) +
			times(c.busy, 2*(pause+oneBusy)+bare)
	case "d":
		d += times(c.cold, 2*oneStart+pause)
	case "docker":
		d += times(c.docker, oneDocker+pause)
	case "f":
		d += times(c.gathers, pause+2*slowTool)
	case "g":
		d += times(c.outputs, 2*pause+oneOutput) + times(keptOutputs+c.flat, oneOutput/10)
	case "h":
		d += times(2*len(c.callers), c.load)
	case "i":
		d += times(max(c.calls-c.loaded(), c.calls/2), perLoaded)
	case "j":
		d += times(c.items*(len(items)+wholeStarts), oneStart+oneEnd)
	case "growth":
		d += times(c.growth*len(c.tools), between+oneWarm)
		for _, n := range c.tools {
			d += times(n/toolsEach, oneServer)
		}
	}
	return d
}

// loaded is about how many calls part h leaves part i to make less.
func (c scale) loaded() int { return int(time.Duration(len(c.callers)) * c.load / perLoaded) }

// plan tells what will be measured.
func (s *suite) plan(parts []benchmark) {
	var all time.Duration
	var each []string
	for _, b := range parts {
		d := s.scale.takes(b.part)
		all += d
		each = append(each, fmt.Sprintf("%s %v", b.part, d.Round(time.Second)))
	}
	s.say("on two quiet cores this takes about %v: %s", all.Round(10*time.Second), strings.Join(each, ", "))
}

// doAll measures the parts of these names, all if there is none.
func (s *suite) doAll(ctx context.Context, names []string) {
	var parts []benchmark
	for _, b := range benchmarks {
		if len(names) == 0 || slices.Contains(names, b.part) {
			parts = append(parts, b)
		}
	}
	if slices.ContainsFunc(parts, func(b benchmark) bool { return b.part == "docker" }) {
		if s.docker.image, s.docker.why = dockerImage(ctx); s.docker.image == "" {
			s.scale.docker = 0
		}
	}
	s.plan(parts)
	for i, b := range parts {
		if ctx.Err() != nil {
			return
		}
		s.report.Parts = append(s.report.Parts, b.part)
		s.do(ctx, b, parts[i+1:])
	}
}

// do measures one part and tells how it goes.
func (s *suite) do(ctx context.Context, b benchmark, after []benchmark) {
	s.say("(%s) %s: about %v", b.part, b.what, s.scale.takes(b.part).Round(time.Second))
	begin := time.Now()
	err := b.run(s, ctx)
	if b.part != "h" || len(after) == 0 || after[0].part != "i" {
		err = errors.Join(err, s.release())
	}
	if err != nil {
		s.report.Errors = append(s.report.Errors, fmt.Sprintf("(%s) %v", b.part, err))
		s.say("(%s) has failed: %v", b.part, err)
	}
	took := time.Since(begin)
	s.report.Took[b.part] = took.Seconds()
	// This machine's speed is that of the parts so far.
	s.spent += took
	s.planned += s.scale.takes(b.part)
	var left time.Duration
	for _, b := range after {
		left += s.scale.takes(b.part)
	}
	left = time.Duration(float64(left) * float64(s.spent) / float64(s.planned))
	s.say("(%s) took %v; about %v to go", b.part, took.Round(time.Second), left.Round(10*time.Second))
}

// say tells who waits.
func (s *suite) say(format string, a ...any) { fmt.Fprintf(s.errs, "bench: "+format+"\n", a...) }
