package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"
)

// growthStep is a number of tools, ten to a server.
type growthStep struct {
	name    string
	servers map[string]server
}

// toolsEach is how many tools a server has.
const toolsEach = 10

func growthSteps(self string, tools []int) []growthStep {
	var steps []growthStep
	for _, tools := range tools {
		step := growthStep{name: fmt.Sprintf("warm run_python print(1), %d tools of %d servers configured", tools, tools/toolsEach), servers: map[string]server{}}
		for i := range tools / toolsEach {
			step.servers[fmt.Sprintf("server%02d", i)] = server{Command: self, Args: []string{toolServer, strconv.Itoa(toolsEach)}}
		}
		steps = append(steps, step)
	}
	return steps
}

// touch has the bridge start each server and learn its tools.
func (g growthStep) touch(ctx context.Context, c *client) error {
	if len(g.servers) == 0 {
		return nil
	}
	const code = "import sys\nprint(sum(len(sys.modules['mcp.servers.' + name].TOOLS) for name in mcp_servers))"
	_, _, err := c.python(ctx, code, fmt.Sprintf("%d\n", toolsEach*len(g.servers)), only(slices.Sorted(maps.Keys(g.servers))...))
	return err
}

// between is the pause from the call of one bridge to that of another. A bridge has pause to itself after its own.
const between = 200 * time.Millisecond

// growth is part c again, with more and more tools configured, which no call uses. Each server has been asked for its tools
// before.
func (s *suite) growth(ctx context.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	steps := growthSteps(self, s.scale.tools)
	bridges := make([]*client, len(steps))
	defer func() {
		for _, c := range bridges {
			if c != nil {
				err = errors.Join(err, c.close())
			}
		}
	}()
	for i, step := range steps {
		if bridges[i], err = s.warm(ctx, step.servers); err != nil {
			return err
		}
		if err := step.touch(ctx, bridges[i]); err != nil {
			return err
		}
	}
	r := rounds{calls: make([]series, len(steps)), previous: -1}
	for range s.scale.growth {
		if ctx.Err() != nil {
			break
		}
		r.turn(func(i int, apart time.Duration) (time.Duration, error) {
			sleep(ctx, apart)
			_, took, err := bridges[i].python(ctx, "print(1)", "1\n", nil)
			return took, err
		})
	}
	for i, step := range steps {
		s.report.figure("growth", step.name, false, "ms", r.calls[i])
	}
	r.judge(s.report, s.scale.tools[len(steps)-1])
	return nil
}

// rounds are calls of several bridges, in each round one of each.
type rounds struct {
	calls    []series
	more     []float64 // that the last bridge's call took than the first's, by rounds in which both succeeded
	previous int       // whose call was the last; -1 for none
}

// turn is one round, in random order, so that each comes after each other. call waits for as long as it is told before its clock runs.
func (r *rounds) turn(call func(i int, apart time.Duration) (time.Duration, error)) {
	took := make([]float64, len(r.calls))
	for _, i := range rand.Perm(len(r.calls)) {
		apart := between
		if i == r.previous {
			apart = pause
		}
		d, err := call(i, apart)
		r.calls[i].took(d, err)
		if took[i] = milliseconds(d); err != nil {
			took[i] = math.NaN()
		}
		r.previous = i
	}
	if d := took[len(took)-1] - took[0]; !math.IsNaN(d) {
		r.more = append(r.more, d)
	}
}

// measurable is the share of the call itself from which on a difference counts as one. docs/performance.md says why it is this.
const measurable = 0.1

// judge says what the last bridge's tools cost a call that uses none of them, and whether that can be measured.
func (r *rounds) judge(to *Report, tools int) {
	d := medianDifference(r.more)
	bound := measurable * median(r.calls[0].values)
	to.cost("growth", fmt.Sprintf("%d tools that a call doesn't use", tools), d)
	to.judged("growth", fmt.Sprintf("%d tools configured cost nothing measurable: the range of the difference is at most a tenth of the call without any, %s ms", tools, number(bound)),
		d.text("ms"), d.within(0, bound))
}
