package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

//go:embed jupyter.py
var jupyter string

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

// notebook is a plain Jupyter kernel that bad calls are made in.
type notebook struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *tail
}

func (l *lab) startNotebook(ctx context.Context) (*notebook, error) {
	n := &notebook{stderr: &tail{limit: 2 << 10}}
	n.cmd = exec.CommandContext(ctx, l.jupyter, "-c", jupyter) //nolint:gosec // a baseline
	n.cmd.Stderr, n.cmd.Dir = n.stderr, l.dir
	n.cmd.Cancel = func() error { return n.in.Close() }
	n.cmd.WaitDelay = 20 * time.Second
	out, err := n.cmd.StdoutPipe()
	if err == nil {
		n.in, err = n.cmd.StdinPipe()
	}
	if err == nil {
		err = n.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	n.out = bufio.NewReader(out)
	if _, err := n.out.ReadBytes('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("a Jupyter kernel: %w; %s", err, n.stderr), n.close())
	}
	return n, nil
}

// call makes a bad call and the next one, and returns how long both took beyond the limit, and
// what the next one has found of the state.
func (n *notebook) call(code string, limit time.Duration) (took time.Duration, left string, err error) {
	if err := json.NewEncoder(n.in).Encode(map[string]any{"code": code, "limit": limit.Seconds()}); err != nil {
		return 0, "", err
	}
	line, err := n.out.ReadBytes('\n')
	if err != nil {
		return 0, "", fmt.Errorf("a Jupyter kernel: %w; %s", err, n.stderr)
	}
	var got struct {
		MS   float64
		Left string
	}
	err = json.Unmarshal(line, &got)
	return time.Duration(got.MS * float64(time.Millisecond)), got.Left, err
}

func (n *notebook) close() error {
	return errors.Join(n.in.Close(), n.cmd.Wait())
}

// badRounds is how often each bad call is made. A Jupyter kernel, which takes a second to start
// again, has every fifth of them.
const badRounds, peerEvery = 100, 5

// badCalls makes each of them in one sandbox and, in turns, in a Jupyter kernel.
func (s *suite) badCalls(ctx context.Context) error {
	var peer *notebook
	var err error
	if _, missing := os.Stat(s.jupyter); missing != nil {
		s.report.absent("l", "a plain Jupyter kernel after bad calls", "it isn't installed (-jupyter)")
	} else if peer, err = s.startNotebook(ctx); err != nil {
		return err
	}
	all, nexts, theirs := make([]series, len(bad)), make([]series, len(bad)), make([]series, len(bad))
	left := make([][]string, len(bad))
	err = s.withWarm(ctx, nil, func(c *client) error {
		in, _, err := keep(ctx, c, "state = {'rows': list(range(1000))}")
		for round := range s.rounds(badRounds) {
			for i, b := range bad {
				if err != nil || ctx.Err() != nil {
					return err
				}
				var whole, next time.Duration
				whole, next, err = badCall(ctx, c, in, b.code, b.limit, b.name == "cancel")
				all[i].took(whole, err)
				nexts[i].took(next, err)
				if err == nil && peer != nil && round%peerEvery == 0 {
					took, became, err := peer.call(b.code, b.limit)
					theirs[i].took(took, err)
					if err == nil && !slices.Contains(left[i], became) {
						left[i] = append(left[i], became)
					}
				}
			}
		}
		return err
	})
	for i, b := range bad {
		s.report.figure("l", b.name+", and the next answer", "ms", all[i], false)
		if peer != nil {
			name := "in a plain Jupyter kernel, whose variables are " + strings.Join(left[i], ", or ")
			s.report.figure("l", name, "ms", theirs[i], true)
		}
	}
	for i, b := range bad {
		s.report.figure("l", "the next call alone after "+b.name+", variables as before", "ms", nexts[i], false)
	}
	if peer != nil {
		err = errors.Join(err, peer.close())
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
