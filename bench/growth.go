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

// growth is part c again, with more and more tools configured, which no call uses. Each server has been asked for its tools
// before.
func (s *suite) growth(ctx context.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	steps := growthSteps(self, s.scale.tools)
	calls := make([]series, len(steps))
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
	last := len(steps) - 1
	var more []float64 // that a call takes with the most tools than with none, by rounds
	for range s.scale.growth {
		took := make([]float64, len(steps))
		for _, i := range rand.Perm(len(steps)) { // each comes after each other
			sleep(ctx, pause)
			_, d, err := bridges[i].python(ctx, "print(1)", "1\n", nil)
			calls[i].took(d, err)
			if took[i] = milliseconds(d); err != nil {
				took[i] = math.NaN()
			}
		}
		if ctx.Err() != nil {
			break
		}
		if d := took[last] - took[0]; !math.IsNaN(d) {
			more = append(more, d)
		}
	}
	for i, step := range steps {
		s.report.figure("growth", step.name, false, "ms", calls[i])
	}
	d := medianDifference(more)
	s.report.cost("growth", fmt.Sprintf("%d tools that a call doesn't use", s.scale.tools[last]), d)
	s.report.verdict("growth", fmt.Sprintf("%d tools configured cost nothing measurable: the difference may as well be 0 or less", s.scale.tools[last]), d.low, "ms", 0)
	return nil
}
