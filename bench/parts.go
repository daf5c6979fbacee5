package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

const printOne = "print(1)"

func (s *suite) starts(ctx context.Context) error {
	var none, many, version, nothing series
	for range s.rounds(200) {
		if ctx.Err() != nil {
			break
		}
		none.took(s.start(ctx, nil))
		many.took(s.start(ctx, s.shops(13)))
		version.took(runToEnd(ctx, s.bridge, "version"))
		nothing.took(runToEnd(ctx, "true"))
	}
	s.report.figure("a", "process start → initialize answered, no servers", "ms", none, false)
	s.report.figure("a", "the same, 13 servers configured", "ms", many, false)
	s.report.figure("a", "`mcp-bridge version`, start to end", "ms", version, true)
	s.report.figure("a", "`true`, start to end", "ms", nothing, true)
	return nil
}

func (l *lab) start(ctx context.Context, servers map[string]server) (time.Duration, error) {
	cmd, err := l.command(servers)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	c, err := greet(ctx, cmd)
	took := time.Since(begin)
	if err != nil {
		return 0, err
	}
	return took, c.close()
}

func runToEnd(ctx context.Context, name string, args ...string) (time.Duration, error) {
	begin := time.Now()
	err := exec.CommandContext(ctx, name, args...).Run() //nolint:gosec // a baseline
	return time.Since(begin), err
}

func (s *suite) firstCalls(ctx context.Context) error {
	var first, podman series
	for range s.rounds(10) {
		if ctx.Err() != nil {
			break
		}
		c, err := s.serve(ctx, nil)
		if err != nil {
			return err
		}
		_, took, err := c.python(ctx, printOne, "1\n", noServers)
		first.took(took, errors.Join(err, c.close()))
		podman.took(s.podmanRun(ctx))
	}
	s.report.figure("b", "first run_python of a process", "ms", first, false)
	s.report.figure("b", "`podman run` of the same", "ms", podman, true)
	return nil
}

func (s *suite) warmCalls(ctx context.Context) error {
	var warm, bare, podman, eight series
	err := s.withWarm(ctx, nil, func(c *client) error {
		for range s.rounds(200) {
			if !sleep(ctx, pause) {
				break
			}
			_, took, err := c.python(ctx, printOne, "1\n", noServers)
			warm.took(took, err)
			bare.took(exchange(ctx))
			podman.took(s.podmanRun(ctx))
		}
		for range s.rounds(10) {
			if !sleep(ctx, pause) {
				break
			}
			together(8, &eight, func() (time.Duration, error) {
				_, took, err := c.python(ctx, printOne, "1\n", noServers)
				return took, err
			})
		}
		return nil
	})
	s.report.figure("c", "warm run_python of print(1)", "ms", warm, false)
	s.report.figure("c", "8 at once, each of them", "ms", eight, false)
	s.report.figure("c", "a Python that waits in `podman run` is sent print(1), no bridge", "ms", bare, true)
	s.report.figure("c", "`podman run` of the same", "ms", podman, true)
	s.report.compare("c", "bridge and guest in a warm call", warm, bare, "ms")
	s.report.ratio("c", "`podman run` to a warm call", podman, warm)
	return err
}

// together calls f n times at once.
func together(n int, to *series, f func() (time.Duration, error)) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range n {
		all.Go(func() {
			took, err := f()
			mu.Lock()
			defer mu.Unlock()
			to.took(took, err)
		})
	}
	all.Wait()
}

func (s *suite) coldCalls(ctx context.Context) error {
	var cold, podman series
	err := s.withWarm(ctx, nil, func(c *client) error {
		for range s.rounds(100) {
			if ctx.Err() != nil {
				break
			}
			_, took, err := c.python(ctx, printOne, "1\n", noServers)
			cold.took(took, err)
			sleep(ctx, pause) // its container's end is no part of the next one's turn
			podman.took(s.podmanRun(ctx))
		}
		return nil
	}, "MCP_BRIDGE_STANDBY=0")
	s.report.figure("d", "run_python of print(1), MCP_BRIDGE_STANDBY=0", "ms", cold, false)
	s.report.figure("d", "`podman run` of the same", "ms", podman, true)
	s.report.ratio("d", "a cold call to `podman run`", cold, podman)
	return err
}

// echoes prints the milliseconds of 200 calls of a tool, as JSON.
const echoes = `
import json, time
call, clock, took = mcp_shop00.echo, time.perf_counter, []
assert call(text="x") == "x"
for _ in range(200):
    begin = clock()
    call(text="x")
    took.append((clock() - begin) * 1000)
print(json.dumps(took))
`

func (s *suite) toolCalls(ctx context.Context) error {
	var inside, bare series
	err := s.withShop(ctx, func(c, direct *client) error {
		for range s.rounds(10) {
			if ctx.Err() != nil {
				break
			}
			_, _ = timed(ctx, c, echoes, &inside) // counted
			for range 200 {
				begin := time.Now()
				_, err := direct.tool(ctx, "echo", map[string]any{"text": "x"})
				bare.took(time.Since(begin), err)
			}
		}
		return nil
	})
	s.report.figure("e", "tool call from the code, by its own clock", "ms", inside, false)
	s.report.figure("e", "the same call of the same server by a client on the host", "ms", bare, true)
	s.report.compare("e", "container and bridge in a tool call", inside, bare, "ms")
	return err
}

// withShop has f use a bridge with a server, and a client of a server of its own.
func (s *suite) withShop(ctx context.Context, f func(c, direct *client) error) error {
	direct, err := greet(ctx, exec.Command(s.bridge, "demo-server")) //nolint:gosec // what is measured
	if err != nil {
		return err
	}
	err = s.withWarm(ctx, s.shops(1), func(c *client) error { return f(c, direct) })
	return errors.Join(err, direct.close())
}

// timed runs code that prints an array of milliseconds, and returns the time of the whole call.
func timed(ctx context.Context, c *client, code string, to *series) (time.Duration, error) {
	out, took, err := c.python(ctx, code, "", map[string]any{"timeout": 60})
	var values []float64
	if err == nil {
		err = json.Unmarshal([]byte(out), &values)
	}
	if err != nil {
		to.add(0, err)
		return 0, err
	}
	to.values = append(to.values, values...)
	return took, nil
}

// loads has 1, 2, 4 and 8 callers call one bridge again and again, and run podman as often as they
// can, half of it before and half after.
func (s *suite) loads(ctx context.Context) error {
	return s.withWarm(ctx, nil, func(c *client) error {
		for _, n := range []int{1, 2, 4, 8} {
			podman := func() (time.Duration, error) { return s.podmanRun(ctx) }
			before, _ := sustain(ctx, n, s.load/2, podman)
			rate, calls := sustain(ctx, n, s.load, func() (time.Duration, error) {
				_, took, err := c.python(ctx, printOne, "1\n", noServers)
				return took, err
			})
			after, runs := sustain(ctx, n, s.load/2, podman)
			s.report.figure("h", fmt.Sprintf("callers: %d, calls", n), "1/s", one(rate), false)
			s.report.figure("h", fmt.Sprintf("callers: %d, each call", n), "ms", calls, false)
			s.report.figure("h", fmt.Sprintf("callers: %d, `podman run`s", n), "1/s", one((before+after)/2), true)
			s.report.figure("h", fmt.Sprintf("callers: %d, each `podman run`", n), "ms", runs, true)
		}
		return nil
	})
}

// sustain has n callers call f for a while, and returns how many succeeded in a second.
func sustain(
	ctx context.Context, n int, span time.Duration, f func() (time.Duration, error),
) (rate float64, each series) {
	begin := time.Now()
	together(n, &series{}, func() (time.Duration, error) {
		var own series
		for time.Since(begin) < span && ctx.Err() == nil {
			own.took(f())
			if own.failed > 3 {
				break
			}
		}
		merge.Lock()
		defer merge.Unlock()
		each.values = append(each.values, own.values...)
		each.failed += own.failed
		each.first = errors.Join(each.first, own.first)
		return 0, nil
	})
	return float64(len(each.values)) / time.Since(begin).Seconds(), each
}

var merge sync.Mutex // of what the callers of one step have measured

func (s *suite) memory(ctx context.Context) error {
	c, err := s.serve(ctx, nil)
	if err != nil {
		return err
	}
	sleep(ctx, 2*time.Second)
	var rest, servers, calls series
	rest.add(resident(c.pid()))
	if err := c.close(); err != nil {
		return err
	}
	err = s.withWarm(ctx, s.shops(13), func(c *client) error {
		const code = "print(sum(1 for s in [mcp_servers[n] for n in mcp_servers] if s.echo(text='x') == 'x'))"
		if _, _, err := c.python(ctx, code, "13\n", nil); err != nil {
			return err
		}
		sleep(ctx, 2*time.Second)
		servers.add(resident(c.pid()))
		for range max(s.calls/100, 1) {
			var each series
			for range 25 {
				together(4, &each, func() (time.Duration, error) {
					_, took, err := c.python(ctx, printOne, "1\n", noServers)
					return took, err
				})
			}
			if each.first != nil || ctx.Err() != nil {
				return each.first
			}
			calls.add(resident(c.pid()))
		}
		return nil
	})
	s.report.figure("i", "the bridge's memory at rest", "MB", rest, false)
	s.report.figure("i", "the same with 13 servers started", "MB", servers, false)
	s.report.figure("i", fmt.Sprintf("the same during %d calls of 4 callers", s.calls), "MB", calls, false)
	if n := len(calls.values) / 2; n > 0 {
		s.report.compare("i", "memory, second half to first", series{values: calls.values[n:]},
			series{values: calls.values[:n]}, "MB")
	}
	return err
}
