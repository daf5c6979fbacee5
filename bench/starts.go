package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// starts is part a: from the start of the process to the answer to initialize.
func (s *suite) starts(ctx context.Context) error {
	var bridge, version, nothing series
	for range s.scale.starts {
		if ctx.Err() != nil {
			break
		}
		took, err := s.start(ctx)
		bridge.took(took, err)
		version.took(command(ctx, s.bridge, "version"))
		nothing.took(command(ctx, "true"))
	}
	s.report.figure("a", "process start → initialize answered", false, "ms", bridge)
	s.report.figure("a", "mcp-bridge version, start to end", true, "ms", version)
	s.report.figure("a", "true, start to end", true, "ms", nothing)
	s.report.verdict("a", "process start → initialize ≤ 30 ms, p50", median(bridge.values), "ms", 30)
	return nil
}

// start is one of a bridge, which is ended again off the clock.
func (s *suite) start(ctx context.Context) (time.Duration, error) {
	cmd, err := s.command(nil)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	c, err := greet(ctx, cmd)
	if err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, c.close()
}

// command is a program from its start to its end.
func command(ctx context.Context, argv ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the baselines' own commands
	said := &tail{limit: 2 << 10}
	cmd.Stderr = said
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w; %s", argv[0], err, said)
	}
	return time.Since(begin), nil
}

// firstCalls is part b: the first call of a process, with nothing remembered of the image and with what earlier processes have found.
func (s *suite) firstCalls(ctx context.Context) error {
	if err := s.readyEngine(ctx); err != nil {
		return err
	}
	var ever, process, podman series
	known := filepath.Join(s.dir, "known")
	if _, err := s.firstCall(ctx, known); err != nil { // so that something is remembered
		return err
	}
	for i := range s.scale.first {
		if ctx.Err() != nil {
			break
		}
		unknown := filepath.Join(s.dir, fmt.Sprintf("unknown-%d", i))
		ever.took(s.firstCall(ctx, unknown))
		process.took(s.firstCall(ctx, known))
		podman.took(s.podmanRun(ctx))
		if err := os.RemoveAll(unknown); err != nil {
			return err
		}
	}
	s.report.figure("b", "first run_python ever: engine found, image tried, print(1)", false, "ms", ever)
	s.report.figure("b", "first run_python of a process, the image known", false, "ms", process)
	s.report.figure("b", "podman run of the same", true, "ms", podman)
	return nil
}

// firstCall is the first of a new bridge, which finds this cache.
func (s *suite) firstCall(ctx context.Context, cache string) (took time.Duration, err error) {
	c, err := s.serve(ctx, nil, "XDG_CACHE_HOME="+cache)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	_, took, err = c.python(ctx, "print(1)", "1\n", noServers)
	return took, err
}
