package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
)

// growthStep is a number of tools, ten to a server.
type growthStep struct {
	name    string
	servers map[string]server
}

func growthSteps(self string, tools []int) []growthStep {
	const each = 10
	var steps []growthStep
	for _, tools := range tools {
		step := growthStep{name: fmt.Sprintf("warm run_python print(1), %d tools of %d servers configured", tools, tools/each), servers: map[string]server{}}
		for i := range tools / each {
			step.servers[fmt.Sprintf("server%02d", i)] = server{Command: self, Args: []string{toolServer, strconv.Itoa(each)}}
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
	_, _, err := c.python(ctx, code, fmt.Sprintf("%d\n", 10*len(g.servers)), only(slices.Sorted(maps.Keys(g.servers))...))
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
	for range s.scale.growth {
		for i, c := range bridges {
			sleep(ctx, pause)
			_, took, err := c.python(ctx, "print(1)", "1\n", nil)
			calls[i].took(took, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	for i, step := range steps {
		s.report.figure("growth", step.name, false, "ms", calls[i])
	}
	low := s.report.cost("growth", fmt.Sprintf("%d tools that a call doesn't use", s.scale.tools[len(steps)-1]), calls[len(steps)-1].values, calls[0].values)
	s.report.verdict("growth", "300 tools configured cost nothing measurable: the difference may as well be 0 or less", low, "ms", 0)
	return nil
}
