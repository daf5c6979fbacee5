package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// start starts processes and ends them again.
func (s *suite) start(ctx context.Context, _ *client) error {
	initialized := func(servers int) taker {
		return func(ctx context.Context) (time.Duration, error) {
			c, err := s.serve(ctx, servers)
			if err != nil {
				return 0, err
			}
			return c.ready, c.close()
		}
	}
	toEnd := func(name string, args ...string) taker {
		return func(ctx context.Context) (time.Duration, error) {
			took, _, err := program(ctx, name, args...)
			return took, err
		}
	}
	return s.turns(ctx, 100, 0,
		row("process start → `initialize` answered, no servers", initialized(0)),
		row("the same, 13 servers configured", initialized(13)),
		beside("`mcp-bridge version`, start to end", toEnd(s.bridge, "version")),
		beside("`true`, start to end", toEnd("true")))
}

// call makes calls of print(1): of a new process, warm, and with no container that waits.
func (s *suite) call(ctx context.Context, ahead *client) error {
	alone, err := s.warm(ctx, 0, "MCP_BRIDGE_STANDBY=0")
	if err != nil {
		return err
	}
	exchange, err := ahead.exchange(ctx)
	if err != nil {
		return err
	}
	process := func(ctx context.Context) (time.Duration, error) {
		c, err := s.serve(ctx, 0)
		if err != nil {
			return 0, err
		}
		took, err := c.one(ctx)
		return took, errors.Join(err, c.close())
	}
	first := row("the first `run_python` of a process", process)
	warm := row("warm `run_python` of `print(1)`", ahead.one)
	cold := row("the same without containers that wait (`MCP_BRIDGE_STANDBY=0`)", alone.one)
	bare := beside("a guest that waits is sent `print(1)`, no bridge", exchange)
	run := beside("`podman run` of `print(1)`", podmanRun(baseImage))
	err = errors.Join(s.turns(ctx, 10, pause, first), s.turns(ctx, 50, pause, cold),
		s.turns(ctx, 100, pause, warm, bare, run))
	s.report.compare("what the bridge adds to a warm call", warm, bare)
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

// tool has code call a tool, and a client on the host call the same tool of a server of its own.
func (s *suite) tool(ctx context.Context, c *client) error {
	direct, err := dial(ctx, exec.Command(s.bridge, "demo-server")) //nolint:gosec // what is measured
	if err != nil {
		return err
	}
	s.clients = append(s.clients, direct)
	echo := func(ctx context.Context) (time.Duration, error) {
		begin := time.Now()
		text, err := direct.tool(ctx, "echo", map[string]any{"text": "x"})
		took := time.Since(begin)
		if err == nil && text != "x" {
			err = fmt.Errorf("echo answered %.100q", text)
		}
		return took, err
	}
	inside := row("a tool call from the code, by its own clock", nil)
	host := beside("the same call by a client on the host", echo)
	for range s.rounds(10) {
		out, _, err := c.python(ctx, echoes, nil)
		if err != nil {
			return err
		}
		var values []float64
		if err := json.Unmarshal([]byte(out), &values); err != nil {
			return fmt.Errorf("%w in %.100q", err, out)
		}
		inside.values = append(inside.values, values...)
		for range values {
			if err := host.again(ctx); err != nil {
				return err
			}
		}
	}
	s.report.put(inside, host)
	s.report.compare("what container and bridge add to a tool call", inside, host)
	return nil
}

// load has 1, 4 and 8 callers call one bridge again and again, and run podman as often as they can.
func (s *suite) load(ctx context.Context, c *client) (err error) {
	for _, n := range []int{1, 4, 8} {
		calls := row(fmt.Sprintf("callers: %d, `run_python` of `print(1)`", n), c.one)
		runs := beside(fmt.Sprintf("callers: %d, `podman run` of it", n), podmanRun(baseImage))
		err = errors.Join(err, s.sustain(ctx, n, calls), s.sustain(ctx, n, runs))
	}
	return err
}

// memory looks at the bridge at rest, with servers, and while it is called.
func (s *suite) memory(ctx context.Context, c *client) error {
	rest, err := s.serve(ctx, 0)
	if err != nil {
		return err
	}
	s.clients = append(s.clients, rest)
	const code = "print(sum(mcp_servers[name].echo(text='x') == 'x' for name in mcp_servers))"
	if _, err := c.prints(ctx, code, "13\n", nil); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	err = errors.Join(s.resident("the bridge's memory at rest", rest),
		s.resident("the same with 13 servers started", c))
	calls, one := &figure{unit: "MB"}, row("a call", c.one)
	for range s.rounds(50) {
		for range 5 {
			err = errors.Join(err, together(4, func() error { return one.again(ctx) }))
		}
		mb, failed := c.resident()
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		calls.values = append(calls.values, mb)
	}
	calls.name = fmt.Sprintf("the same during %d calls of 4 callers", len(one.values))
	s.report.put(calls)
	half := len(calls.values) / 2
	s.report.compare("the second half of those calls to the first",
		&figure{unit: "MB", values: calls.values[half:]}, &figure{values: calls.values[:half]})
	return nil
}
