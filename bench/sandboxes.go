package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

var begun = regexp.MustCompile(`\[sandbox (\w+): new[^\]]*\]$`)

// A box is a sandbox of a bridge.
type box struct {
	*client
	id, said string // what its first call printed
}

// begin begins a sandbox with code.
func (c *client) begin(ctx context.Context, code string) (*box, time.Duration, error) {
	args := map[string]any{"sandbox": "new", "servers": []string{}, "timeout": 60}
	out, took, err := c.python(ctx, code, args)
	if err != nil {
		return nil, 0, err
	}
	m := begun.FindStringSubmatch(out)
	if m == nil {
		return nil, 0, c.failed("no sandbox was begun: %.500s", out)
	}
	return &box{c, m[1], out}, took, nil
}

// run makes a call in the sandbox that has a number of seconds.
func (b *box) run(ctx context.Context, code string, limit float64) (string, time.Duration, error) {
	args := map[string]any{"sandbox": b.id, "servers": []string{}, "timeout": limit}
	return b.python(ctx, code, args)
}

// next makes a call in the sandbox that prints want and leaves what it has done.
func (b *box) next(ctx context.Context, code, want string) (time.Duration, error) {
	out, took, err := b.run(ctx, code, 60)
	line := fmt.Sprintf("%s\n[sandbox %s, call ", want, b.id)
	if err == nil && !strings.HasPrefix(out, line) {
		err = b.failed("%.500q does not begin with %q", out, line)
	}
	return took, err
}

// one runs printOne in the sandbox. It is a taker.
func (b *box) one(ctx context.Context) (time.Duration, error) { return b.next(ctx, printOne, "1") }

// pandas begins a sandbox that has a table; the comment names what it needs.
const pandas = "# /// script\n# dependencies = ['pandas']\n# ///\nimport pandas\n" +
	"table = pandas.DataFrame({'n': range(5000)})"

// sandbox makes calls in sandboxes and, in turns, calls that have a container each.
func (s *suite) sandbox(ctx context.Context, c *client) error {
	if _, err := s.manage("build data"); err != nil {
		return err
	}
	first := row("the first call of a sandbox", func(ctx context.Context) (time.Duration, error) {
		b, took, err := c.begin(ctx, printOne)
		if err == nil && !strings.HasPrefix(b.said, "1\n") {
			err = c.failed("a new sandbox printed %.500q", b.said)
		}
		return took, err
	})
	if err := s.turns(ctx, 20, pause, first); err != nil {
		return err
	}
	empty, _, err := c.begin(ctx, printOne)
	if err != nil {
		return err
	}
	full, _, err := c.begin(ctx, pandas)
	if err != nil {
		return err
	}
	kept := row("a later call, of `print(1)`", empty.one)
	table := row("the same in a sandbox with a table of pandas", full.one)
	own := beside("the same in a container of its own, which waited", c.one)
	err = s.turns(ctx, 100, pause, kept, table, own)
	s.report.compare("a sandbox in a call", kept, own)
	return errors.Join(err, s.four(ctx, c))
}

// four looks at the memory of four sandboxes between calls. Then it has as many callers call in
// them again and again, and as long without.
func (s *suite) four(ctx context.Context, warm *client) error {
	c, err := s.warm(ctx, 0, "MCP_BRIDGE_STANDBY=0")
	if err != nil {
		return err
	}
	const places = 4
	free := make(chan *box, places)
	for range places {
		b, _, err := c.begin(ctx, printOne)
		if err != nil {
			return err
		}
		free <- b
	}
	time.Sleep(2 * time.Second)
	memory := &figure{name: "memory of an idle sandbox, with conmon", unit: "MB"}
	if memory.values, err = memoryOfContainers(ctx, c.cmd.Process.Pid); err != nil {
		return err
	}
	s.report.put(memory)
	kept := row("callers: 4, each in a sandbox", func(ctx context.Context) (time.Duration, error) {
		b := <-free
		defer func() { free <- b }()
		return b.one(ctx)
	})
	alone := beside("callers: 4, a container for each call", warm.one)
	return errors.Join(err, s.sustain(ctx, places, kept), s.sustain(ctx, places, alone))
}

// memoryOfContainers returns the memory of each container of a bridge, with its conmon, in MB. Of a
// page that several processes have each counts its share, which only podman's root may read.
func memoryOfContainers(ctx context.Context, bridge int) (all []float64, err error) {
	const script = `set -e
for id in $(podman ps -q --filter label=io.mcp-bridge.owner-pid="$0"); do
	conmon=$(podman inspect -f '{{.State.ConmonPid}}' "$id")
	for pid in $conmon $(podman top "$id" hpid | tail -n +2); do
		cat "/proc/$pid/smaps_rollup"
	done
	echo next
done`
	_, out, err := program(ctx, "podman", "unshare", "sh", "-c", script, fmt.Sprint(bridge))
	for one := range strings.SplitSeq(strings.TrimSuffix(out, "next\n"), "next\n") {
		mb, failed := megabytes(one, "Pss")
		all, err = append(all, mb), errors.Join(err, failed)
	}
	return all, err
}

// A badCall ends the process that has the variables, by itself where the limit is zero.
type badCall struct {
	name, code string
	limit      time.Duration
}

var badCalls = []badCall{
	{"time limit", "while True: pass", 300 * time.Millisecond},
	{"cancel", "while True: pass", 200 * time.Millisecond},
	{"memory", "hog = []\nwhile True: hog.append(bytearray(8 << 20))", 0},
	{"SIGKILL", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 0},
	{"segfault", "import ctypes; ctypes.string_at(0)", 0},
	{"`os._exit`", "import os; os._exit(7)", 0},
	{"fork bomb", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
		500 * time.Millisecond},
	{"stack overflow", "import ctypes, resource, sys\nsys.setrecursionlimit(1 << 30)\n" +
		"resource.setrlimit(resource.RLIMIT_STACK, (1 << 14, -1))\n" +
		"f = ctypes.CFUNCTYPE(None)(lambda: f()); f()", 0},
	{"all descriptors closed", "import os; os.closerange(0, 4096)", 0},
}

// state is what a sandbox has that a bad call must not lose.
const state = "state = {'rows': list(range(1000))}"

// bad makes bad calls in one sandbox, each with the call after it, and in turns begins a new one.
func (s *suite) bad(ctx context.Context, c *client) error {
	b, _, err := c.begin(ctx, state)
	if err != nil {
		return err
	}
	var figures []*figure
	for _, call := range badCalls {
		bad := func(ctx context.Context) (time.Duration, error) { return b.bad(ctx, call) }
		figures = append(figures, row(call.name+", and the next call", bad))
	}
	again := func(ctx context.Context) (time.Duration, error) {
		other, took, err := c.begin(ctx, state)
		if err != nil {
			return 0, err
		}
		next, err := other.next(ctx, rows, "1000")
		return took + next, err
	}
	name := "a new sandbox with the same variables, and its next call"
	return s.turns(ctx, 50, 0, append(figures, beside(name, again))...)
}

// rows is code that prints what is left of the state.
const rows = "print(len(state['rows']))"

// bad makes a bad call, and the next one, which must find the state as before. It returns how long
// both took beyond the limit.
func (b *box) bad(ctx context.Context, call badCall) (time.Duration, error) {
	code := "state['rows'].clear()\n" + call.code
	begin := time.Now()
	if call.name == "cancel" {
		gone, stop := context.WithTimeout(ctx, call.limit)
		defer stop()
		if out, _, err := b.run(gone, code, 60); gone.Err() == nil {
			return 0, b.failed("it was not cancelled: %s, %v", out, err)
		}
	} else {
		out, _, err := b.run(ctx, code, cmp.Or(call.limit.Seconds(), 60))
		if said := out + fmt.Sprint(err); !strings.Contains(said, "variables as before this call") {
			return 0, b.failed("%q has not ended its process: %s", code, said)
		}
	}
	_, err := b.next(ctx, rows, "1000")
	return time.Since(begin) - call.limit, err
}
