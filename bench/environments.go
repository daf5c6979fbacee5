package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// imports is code that prints how many milliseconds the usual imports take.
const imports = "import sys, time\nsys.path.append('/opt/env')\nt = time.perf_counter()\n" +
	"import numpy, pandas, matplotlib.pyplot\nprint((time.perf_counter() - t) * 1000)"

// env builds the environment data from a cache that a first build has filled, without a network,
// starts containers of it, and imports its packages.
func (s *suite) env(ctx context.Context, base *client) error {
	if _, err := s.manage("build data"); err != nil {
		return err
	}
	build := func(context.Context) (time.Duration, error) {
		if _, err := s.manage("remove data"); err != nil {
			return 0, err
		}
		return s.manage("build data", "HTTPS_PROXY=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9")
	}
	built := row("`env build data`, cache filled, offline", build)
	started := row("`podman run` of `print(1)` in `data`", podmanRun(dataImage))
	inBase := beside("the same in its base image", podmanRun(baseImage))
	err := errors.Join(s.turns(ctx, 2, 0, built), s.turns(ctx, 30, 0, started, inBase))
	c, failed := s.warm(ctx, 0, "MCP_BRIDGE_ENV=data")
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	first := row("import of numpy, pandas and pyplot in the first call that makes it", nil)
	later := row("the same import in later calls, five seconds apart", nil)
	whole := row("those calls as a whole", nil)
	for inside := first; len(later.values) < s.rounds(20); inside = later {
		out, took, err := c.python(ctx, imports, noServers)
		imported, err := printed(out, err)
		if err != nil {
			return err
		}
		inside.took(imported)
		whole.took(took)
		time.Sleep(5 * time.Second) // the next container imports what code imports
	}
	whole.values = whole.values[1:]
	s.report.put(first, later, whole)
	python := func(ctx context.Context) (time.Duration, error) {
		_, out, err := timed(container(ctx, dataImage, "python3", "-I", "-B", "-c", imports))
		return printed(out, err)
	}
	plain := beside("the same import in plain Python, in a container of `data`", python)
	pip := beside("`pip install` of the three into an empty directory, and the import", s.pip)
	warm := row("warm `run_python` of `print(1)` in `data`", c.one)
	same := beside("the same in the base image", base.one)
	return errors.Join(s.turns(ctx, 10, 0, plain), s.turns(ctx, 3, 0, pip),
		s.turns(ctx, 50, pause, warm, same))
}

// printed returns the time that code has printed in milliseconds.
func printed(out string, err error) (time.Duration, error) {
	if err != nil {
		return 0, err
	}
	ms, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	return time.Duration(ms * float64(time.Millisecond)), err
}

// pip does what a call would do that has no environment: it installs the packages, here on the host
// and into a directory of its own, and imports them. It is a taker.
func (s *suite) pip(ctx context.Context) (time.Duration, error) {
	const script = `python3 -m pip install --quiet --disable-pip-version-check --no-cache-dir \
		--only-binary :all: --target "$0" numpy pandas matplotlib && PYTHONPATH="$0" python3 -c "$1"`
	dir, err := os.MkdirTemp(s.dir, "pip-")
	if err != nil {
		return 0, err
	}
	took, out, err := program(ctx, "sh", "-c", script, dir, imports)
	_, err = printed(out, err)
	return took, err
}

// manage runs a command of the bridge about environments, with these variables.
func (s *suite) manage(command string, vars ...string) (time.Duration, error) {
	cmd, err := s.command(0, vars...)
	if err != nil {
		return 0, err
	}
	cmd.Args = append(cmd.Args, strings.Fields("env "+command)...)
	took, _, err := timed(cmd)
	return took, err
}
