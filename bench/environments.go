package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// dataImage is the image of the environment data.
const dataImage = "localhost/mcp-bridge/env-data:latest"

// imports is code that prints how many milliseconds the usual imports take.
const imports = "import sys, time\nsys.path.append('/opt/env')\nt = time.perf_counter()\n" +
	"import numpy, pandas, matplotlib.pyplot\nprint((time.perf_counter() - t) * 1000)"

// environments builds data from a cache that a first build has filled, without a network, and then
// starts containers of it.
func (s *suite) environments(ctx context.Context) error {
	if _, err := s.env(ctx, nil, "build", "data"); err != nil {
		s.report.notes = append(s.report.notes, fmt.Sprintf("(j) not measured: %v", err))
		return nil
	}
	var built, base, start, imported series
	nowhere := []string{"HTTPS_PROXY=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9"}
	layers := map[string]bool{}
	for range s.rounds(3) {
		if _, err := s.env(ctx, nil, "remove", "data"); err != nil {
			return err
		}
		built.took(s.env(ctx, nowhere, "build", "data"))
		layer, err := s.dataLayer(ctx)
		if err != nil {
			return err
		}
		layers[layer] = true
	}
	if len(layers) > 1 {
		return fmt.Errorf("(j) builds of data from one lock have different layers: %v", layers)
	}
	for range s.rounds(50) {
		if ctx.Err() != nil {
			break
		}
		base.took(s.podmanRun(ctx))
		took, _, err := s.podmanCode(ctx, dataImage, printOne)
		start.took(took, err)
	}
	for range s.rounds(10) {
		_, out, err := s.podmanCode(ctx, dataImage, imports)
		imported.took(told(out, err))
	}
	s.report.figure("j", "`env build data`, cache filled, offline", "ms", built, false)
	s.report.figure("j", "`podman run` of print(1) in data", "ms", start, false)
	s.report.figure("j", "the same in its base image", "ms", base, true)
	s.report.ratio("j", "a container's start in data to one in its base image", start, base)
	s.report.figure("j", "import of numpy, pandas and pyplot, plain Python in data", "ms", imported, false)
	return errors.Join(s.learned(ctx, imported), s.plainCalls(ctx))
}

// learning is the time between calls in data, in which the next container imports what it has
// learned.
const learning = 5 * time.Second

// learned makes the same imports in calls of run_python: first, and when it is known that code
// makes them.
func (s *suite) learned(ctx context.Context, plain series) error {
	peer, err := s.pip(ctx)
	if err == nil && peer.failed > 0 {
		err = peer.first
	}
	if err != nil {
		fmt.Fprintf(s.errs, "bench: (j) HAS NO PEER: pip failed, so figures are missing: %v\n", err)
		s.report.notes = append(s.report.notes, fmt.Sprintf("**(j) pip failed**: %v", err))
	}
	var first, inside, call series
	for range s.rounds(3) {
		err := s.withWarm(ctx, nil, func(c *client) error {
			out, _, err := c.python(ctx, imports, "", noServers)
			first.took(told(out, err))
			for range s.rounds(10) {
				if !sleep(ctx, learning) {
					break
				}
				out, took, err := c.python(ctx, imports, "", noServers)
				call.took(took, err)
				inside.took(told(out, err))
			}
			return nil
		}, "MCP_BRIDGE_ENV=data")
		if err != nil {
			return err
		}
	}
	s.report.figure("j", "the same import in the first call of run_python that makes it", "ms", first, false)
	s.report.ratio("j", "that import to plain Python's", first, plain)
	s.report.figure("j", "the same import in later calls", "ms", inside, false)
	s.report.figure("j", "those calls as a whole", "ms", call, false)
	s.report.figure("j", "the same where each call has pip install the packages", "ms", peer, true)
	s.report.ratio("j", "`pip install` in each call to such a call in data", peer, call)
	return nil
}

// plainCalls runs print(1) in warm calls in data, and in turns in the base image.
func (s *suite) plainCalls(ctx context.Context) error {
	var inData, inBase series
	err := s.withWarm(ctx, nil, func(data *client) error {
		return s.withWarm(ctx, nil, func(base *client) error {
			for range s.rounds(100) {
				for c, to := range map[*client]*series{data: &inData, base: &inBase} {
					sleep(ctx, pause)
					_, took, err := c.python(ctx, printOne, "1\n", noServers)
					to.took(took, err)
				}
			}
			return nil
		})
	}, "MCP_BRIDGE_ENV=data")
	if err != nil {
		return err
	}
	s.report.figure("j", "warm run_python of print(1) in data", "ms", inData, false)
	s.report.figure("j", "the same in the base image", "ms", inBase, true)
	return nil
}

// told returns the time that code has printed in milliseconds.
func told(out string, err error) (time.Duration, error) {
	ms, perr := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err == nil {
		err = perr
	}
	return time.Duration(ms * float64(time.Millisecond)), err
}

// dataLayer returns the digest of the layer of data, which is built.
func (l *lab) dataLayer(ctx context.Context) (string, error) {
	cmd, err := l.command(nil)
	if err != nil {
		return "", err
	}
	cmd.Args = append(cmd.Args, "env", "list", "--json")
	out, err := cmd.Output()
	if err == nil {
		err = context.Cause(ctx)
	}
	var rows []struct{ Name, Layer string }
	if err == nil {
		err = json.Unmarshal(out, &rows)
	}
	if err != nil {
		return "", fmt.Errorf("%v: %w", cmd.Args[1:], err)
	}
	for _, r := range rows {
		if r.Name == "data" && r.Layer != "" {
			return r.Layer, nil
		}
	}
	return "", fmt.Errorf("%v doesn't list the layer of data", cmd.Args[1:])
}

// env runs a command about environments, with these variables.
func (l *lab) env(ctx context.Context, vars []string, args ...string) (time.Duration, error) {
	cmd, err := l.command(nil, vars...)
	if err != nil {
		return 0, err
	}
	cmd.Args = append(append(cmd.Args, "env"), args...)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("%v: %w: %s", cmd.Args[1:], err, out)
	}
	return time.Since(begin), nil
}
