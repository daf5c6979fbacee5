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

// starts is part a: from the start of the process to the answer to initialize, with no servers configured and with as many as part i has.
func (s *suite) starts(ctx context.Context) error {
	var bridge, configured, version, nothing series
	for range s.scale.starts {
		if ctx.Err() != nil {
			break
		}
		bridge.took(s.start(ctx, nil))
		configured.took(s.start(ctx, s.shops()))
		version.took(command(ctx, s.bridge, "version"))
		nothing.took(command(ctx, "true"))
	}
	s.report.figure("a", "process start → initialize answered, no servers configured", false, "ms", bridge)
	s.report.figure("a", fmt.Sprintf("process start → initialize answered, %d servers configured", upstreams), false, "ms", configured)
	s.report.figure("a", "mcp-bridge version, start to end", true, "ms", version)
	s.report.figure("a", "true, start to end", true, "ms", nothing)
	s.report.verdict("a", "process start → initialize ≤ 30 ms, no servers configured, p50", median(bridge.values), "ms", 30)
	s.report.verdict("a", fmt.Sprintf("process start → initialize ≤ 30 ms, %d servers configured, p50", upstreams), median(configured.values), "ms", 30)
	return nil
}

// start is one of a bridge, which is ended again off the clock.
func (s *suite) start(ctx context.Context, servers map[string]server) (time.Duration, error) {
	cmd, err := s.command(servers)
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

// firstCalls is part b: the first call of a process, with nothing remembered of the image and with what earlier processes have found. The
// engine is found as a user's bridge finds it, and no service of the benchmarks' own is up meanwhile.
func (s *suite) firstCalls(ctx context.Context) error {
	if err := s.readyEngine(ctx); err != nil { // for the flags of podman run
		return err
	}
	if err := s.stopEngine(); err != nil {
		return err
	}
	var ever, process, podman series
	known := filepath.Join(s.dir, "known")
	own, err := s.firstServed(ctx, known) // so that something is remembered
	if err != nil {
		return err
	}
	if !own {
		s.report.note("(b) a service of podman's was there that the bridge has found: it had none to start")
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

// finding is a new bridge that has to find its engine, and this cache.
func (s *suite) finding(ctx context.Context, cache string) (*client, error) {
	return s.serve(ctx, nil, found, "XDG_CACHE_HOME="+cache)
}

// firstCall is the first of such a bridge.
func (s *suite) firstCall(ctx context.Context, cache string) (took time.Duration, err error) {
	c, err := s.finding(ctx, cache)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	_, took, err = c.python(ctx, "print(1)", "1\n", noServers)
	return took, err
}

// firstServed makes such a call, and says whether podman's service is the bridge's own.
func (s *suite) firstServed(ctx context.Context, cache string) (own bool, err error) {
	c, err := s.finding(ctx, cache)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if _, _, err := c.python(ctx, "print(1)", "1\n", noServers); err != nil {
		return false, err
	}
	services, err := below(c.pid(), called("podman"))
	return services > 0, err
}
