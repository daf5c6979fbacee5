package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// bad are calls that end the process which has the variables, and the time that they have.
var bad = []struct {
	name, code string
	limit      time.Duration // zero: it ends by itself
}{
	{"timeout", "while True: pass", 300 * time.Millisecond},
	{"cancel", "while True: pass", 200 * time.Millisecond},
	{"memory", "hog = []\nwhile True: hog.append(bytearray(8 << 20))", 0},
	{"SIGKILL", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 0},
	{"segfault", "import ctypes; ctypes.string_at(0)", 0},
	{"os._exit", "import os; os._exit(7)", 0},
	{"fork bomb", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
		500 * time.Millisecond},
	{"stack overflow", "import ctypes, resource, sys\nsys.setrecursionlimit(1 << 30)\n" +
		"resource.setrlimit(resource.RLIMIT_STACK, (1 << 14, -1))\n" +
		"f = ctypes.CFUNCTYPE(None)(lambda: f()); f()", 0},
	{"all descriptors closed", "import os; os.closerange(0, 4096)", 0},
}

// badRounds is how often each bad call is made.
const badRounds = 100

// badCalls makes each of them in one sandbox and, in turns, begins a new one with the same
// variables.
func (s *suite) badCalls(ctx context.Context) error {
	const state, rows = "state = {'rows': list(range(1000))}", "print(len(state['rows']))"
	all, nexts, again := make([]series, len(bad)), make([]series, len(bad)), series{}
	err := s.withWarm(ctx, nil, func(c *client) error {
		in, _, err := keep(ctx, c, state)
		for range s.rounds(badRounds) {
			for i, b := range bad {
				if err != nil || ctx.Err() != nil {
					return err
				}
				var whole, next time.Duration
				whole, next, err = badCall(ctx, c, in, b.code, b.limit, b.name == "cancel")
				all[i].took(whole, err)
				nexts[i].took(next, err)
			}
			other, took, failed := keep(ctx, c, state)
			if failed == nil {
				var next time.Duration
				next, failed = within(ctx, c, rows, "1000", other)
				took += next
			}
			again.took(took, failed)
		}
		return err
	})
	for i, b := range bad {
		s.report.figure("l", b.name+", and the next answer", "ms", all[i], false)
	}
	s.report.figure("l", "a new sandbox with the same variables, and its next call", "ms", again, true)
	for i, b := range bad {
		s.report.figure("l", "the next call alone after "+b.name+", variables as before", "ms", nexts[i], false)
	}
	return err
}

// badCall makes a bad call in a sandbox, and the next one, which must find the state.
func badCall(
	ctx context.Context, c *client, in map[string]any, code string, limit time.Duration, cancel bool,
) (whole, next time.Duration, err error) {
	args := map[string]any{"code": "state['rows'].clear()\n" + code, "timeout": 60}
	for k, v := range in {
		args[k] = v
	}
	begin := time.Now()
	switch {
	case cancel:
		err = c.cancelled(ctx, args, limit)
	default:
		if limit > 0 {
			args["timeout"] = limit.Seconds()
		}
		var out string
		if out, _, err = c.result(ctx, "run_python", args); err == nil &&
			!strings.Contains(out, "variables as before this call") {
			err = fmt.Errorf("after %q: %.500s", code, out)
		}
	}
	if err != nil {
		return 0, 0, err
	}
	next, err = within(ctx, c, "print(len(state['rows']))", "1000", in)
	return time.Since(begin) - limit, next, err
}
