package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// places is how many sandboxes are used at once.
const places = 4

var begun = regexp.MustCompile(`\[sandbox (\w+): new[^\]]*\]$`)

// keep begins a sandbox by code, and returns what later calls in it have as arguments.
func keep(ctx context.Context, c *client, code string) (map[string]any, time.Duration, error) {
	out, took, err := c.python(ctx, code, "", map[string]any{"sandbox": "new", "servers": []string{},
		"timeout": 60})
	m := begun.FindStringSubmatch(out)
	if err == nil && m == nil {
		err = fmt.Errorf("no sandbox was begun: %.500s", out)
	}
	if err != nil {
		return nil, 0, err
	}
	return map[string]any{"sandbox": m[1], "servers": []string{}}, took, nil
}

// within makes a call in a sandbox that prints want and leaves what it has done.
func within(ctx context.Context, c *client, code, want string, in map[string]any) (time.Duration, error) {
	out, took, err := c.python(ctx, code, "", in)
	if line := fmt.Sprintf("%s\n[sandbox %s, call ", want, in["sandbox"]); err == nil &&
		!strings.HasPrefix(out, line) {
		err = fmt.Errorf("%.500q does not begin with %q", out, line)
	}
	return took, err
}

func (s *suite) sandboxes(ctx context.Context) error {
	return errors.Join(s.inSandboxes(ctx), s.withPandas(ctx), s.manyInSandboxes(ctx), s.atRest(ctx),
		s.badCalls(ctx))
}

// inSandboxes makes calls in a sandbox and, in turns, calls that have a container each.
func (s *suite) inSandboxes(ctx context.Context) error {
	var first, kept, warm, inARow series
	err := s.withWarm(ctx, nil, func(c *client) error {
		for range s.rounds(20) {
			_, took, err := keep(ctx, c, printOne)
			first.took(took, err)
			sleep(ctx, pause)
		}
		in, _, err := keep(ctx, c, printOne)
		if err != nil {
			return err
		}
		for range s.rounds(200) {
			if !sleep(ctx, pause) {
				break
			}
			kept.took(within(ctx, c, printOne, "1", in))
			_, took, err := c.python(ctx, printOne, "1\n", noServers)
			warm.took(took, err)
		}
		inARow = s.inARow(ctx, c, printOne, "1", in)
		return nil
	})
	s.report.figure("l", "first call in a sandbox", "ms", first, false)
	s.report.figure("l", "run_python of print(1) in a sandbox", "ms", kept, false)
	s.report.figure("l", "the same in a container of its own, which waited", "ms", warm, true)
	s.report.figure(
		"l",
		"run_python of print(1) in a sandbox, without a pause between calls",
		"ms",
		inARow,
		false,
	)
	s.report.compare("l", "a sandbox in a call", kept, warm, "ms")
	return err
}

// inARow makes calls in a sandbox, each as soon as the one before is answered.
func (s *suite) inARow(ctx context.Context, c *client, code, want string, in map[string]any) (all series) {
	for range s.rounds(500) {
		if ctx.Err() != nil {
			break
		}
		all.took(within(ctx, c, code, want, in))
	}
	return all
}

// withPandas makes calls in a sandbox that has pandas and a table.
func (s *suite) withPandas(ctx context.Context) error {
	if _, err := s.env(ctx, nil, "build", "data"); err != nil {
		s.report.absent("l", "a sandbox with pandas", fmt.Sprintf("its environment can't be made: %.200v", err))
		return nil
	}
	var one, sum, ones, sums series
	err := s.withWarm(ctx, nil, func(c *client) error {
		in, _, err := keep(ctx, c, "import pandas\ntable = pandas.DataFrame({'n': range(5000)})")
		if err != nil {
			return err
		}
		for range s.rounds(200) {
			if !sleep(ctx, pause) {
				break
			}
			one.took(within(ctx, c, printOne, "1", in))
			sum.took(within(ctx, c, "print(table.n.sum())", "12497500", in))
		}
		ones = s.inARow(ctx, c, printOne, "1", in)
		sums = s.inARow(ctx, c, "print(table.n.sum())", "12497500", in)
		return nil
	}, "MCP_BRIDGE_ENV=data")
	s.report.figure("l", "run_python of print(1) in a sandbox with pandas", "ms", one, false)
	s.report.figure("l", "a sum of 5,000 rows in it", "ms", sum, false)
	s.report.figure("l", "print(1) in it, without a pause between calls", "ms", ones, false)
	s.report.figure("l", "a sum of 5,000 rows in it, without a pause between calls", "ms", sums, false)
	return err
}

// manyInSandboxes has four callers call one bridge again and again, in a sandbox each, and as long
// without, half of it before and half after.
func (s *suite) manyInSandboxes(ctx context.Context) error {
	var rate, alone float64
	var each series
	err := s.withWarm(ctx, nil, func(c *client) error {
		free := make(chan map[string]any, places)
		for range places {
			in, _, err := keep(ctx, c, printOne)
			if err != nil {
				return err
			}
			free <- in
		}
		container := func() (time.Duration, error) {
			_, took, err := c.python(ctx, printOne, "1\n", noServers)
			return took, err
		}
		before, _ := sustain(ctx, places, s.load/2, container)
		rate, each = sustain(ctx, places, s.load, func() (time.Duration, error) {
			in := <-free
			defer func() { free <- in }()
			return within(ctx, c, printOne, "1", in)
		})
		after, _ := sustain(ctx, places, s.load/2, container)
		alone = (before + after) / 2
		return nil
	})
	s.report.figure("l", "callers: 4, each in a sandbox, calls", "1/s", one(rate), false)
	s.report.figure("l", "callers: 4, each in a sandbox, each call", "ms", each, false)
	s.report.figure("l", "callers: 4, a container a call, calls", "1/s", one(alone), true)
	return err
}

// spinning has a thread that uses all the processor time it gets.
const spinning = "import threading\ndef spin():\n    while True: pass\n" +
	"threading.Thread(target=spin, daemon=True).start()\n" + printOne

// atRest looks at sandboxes between calls: their memory, and their processor time while a thread of
// their code spins.
func (s *suite) atRest(ctx context.Context) error {
	var memory, ticks series
	err := s.withWarm(ctx, nil, func(c *client) error {
		for range places {
			in, _, err := keep(ctx, c, printOne)
			if err != nil {
				return err
			}
			if _, err := within(ctx, c, printOne, "1", in); err != nil {
				return err
			}
		}
		sleep(ctx, 2*time.Second)
		found, err := containers(ctx, c.pid())
		if err != nil {
			return err
		}
		for _, pid := range found {
			memory.add(shared(ctx, pid))
		}
		return nil
	}, "MCP_BRIDGE_STANDBY=0")
	if err != nil {
		return err
	}
	err = s.withWarm(ctx, nil, func(c *client) error {
		in, _, err := keep(ctx, c, spinning)
		if err != nil {
			return err
		}
		for range s.rounds(20) {
			if _, err := within(ctx, c, printOne, "1", in); err != nil {
				return err
			}
			found, err := containers(ctx, c.pid())
			if err != nil || len(found) != 1 {
				return errors.Join(err, fmt.Errorf("%d containers", len(found)))
			}
			before, err := used(found[0])
			if err != nil {
				return err
			}
			sleep(ctx, 3*time.Second)
			after, err := used(found[0])
			ticks.add(float64(after-before), err)
		}
		return nil
	}, "MCP_BRIDGE_STANDBY=0")
	s.report.figure("l", "memory of an idle sandbox, its share of what processes share, with conmon", "MB",
		memory, false)
	s.report.figure("l", "processor time of a sandbox in 3 s between calls, a thread spinning", "ticks", ticks,
		false)
	return err
}
