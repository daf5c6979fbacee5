package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// warmCalls is part c: calls that find a container waiting, one after the other, some that compute for longer, and eight at once. Beside
// them stands the exchange with a waiting guest that nothing is between but podman's own streams, and podman run. They take turns in
// blocks, so that no container of a baseline is started in the bridge's pauses.
func (s *suite) warmCalls(ctx context.Context) (err error) {
	if err := s.readyEngine(ctx); err != nil {
		return err
	}
	c, err := s.warm(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	g, err := s.govern(ctx, nil)
	if err != nil {
		return err
	}
	var w warmSeries
	defer func() { err = errors.Join(err, g.close("run", len(w.governed.values))) }()
	for len(w.bridge.values)+w.bridge.failed < s.scale.warm && ctx.Err() == nil {
		s.warmBlock(ctx, c, g.client, &w)
	}
	w.figures(s.report)
	s.busyCalls(ctx, c)
	return s.warmBursts(ctx, c)
}

// warmSeries is what part c measures of calls one after the other.
type warmSeries struct{ bridge, governed, bare, started, output, podman series }

// warmBlock is a turn of each.
func (s *suite) warmBlock(ctx context.Context, c, g *client, w *warmSeries) {
	share := func(n int) int { return s.scale.block * n / s.scale.warm }
	for range s.scale.block {
		s.warmCall(ctx, c, &w.bridge)
	}
	for range share(s.scale.governed) {
		s.warmCall(ctx, g, &w.governed)
	}
	for range share(s.scale.bare) {
		one, err := s.exchanges(ctx, 1)
		if err != nil {
			w.bare.fail(err)
			continue
		}
		w.bare.took(one[0].done, nil)
		w.started.took(one[0].started, nil)
		w.output.took(one[0].output, nil)
	}
	for range share(s.scale.podman) {
		w.podman.took(s.podmanRun(ctx))
	}
	sleep(ctx, pause)
}

func (s *suite) warmCall(ctx context.Context, c *client, to *series) {
	_, took, err := c.python(ctx, "print(1)", "1\n", noServers)
	to.took(took, err)
	sleep(ctx, pause)
}

func (w *warmSeries) figures(r *Report) {
	r.figure("c", "warm run_python print(1), 300 ms apart", false, "ms", w.bridge)
	r.figure("c", "the same with MCP_BRIDGE_AUDIT and MCP_BRIDGE_POLICY", false, "ms", w.governed)
	r.figure("c", "execute → done with a waiting guest, no bridge", true, "ms", w.bare)
	r.figure("c", "of that, execute → started: the guest has read it", true, "ms", w.started)
	r.figure("c", "of that, execute → what the code has printed", true, "ms", w.output)
	r.figure("c", "podman run of the same", true, "ms", w.podman)
	r.cost("c", "the bridge, in a warm call", differenceOfMedians(w.bridge.values, w.bare.values))
	r.cost("c", "a policy and a record, in a warm call", differenceOfMedians(w.governed.values, w.bridge.values))
	r.verdict("c", "warm call ≤ 1 ms above the bare exchange, p50", median(w.bridge.values)-median(w.bare.values), "ms", 1)
	r.verdict("c", "warm call ≤ 25 ms, p99", quantile(w.bridge.values, 0.99), "ms", 25)
	r.atLeast("c", "warm call ≥ 50 times faster than podman run, p50", median(w.podman.values)/median(w.bridge.values), "times", 50)
}

// busyLoop computes for about 0.3 s and then prints busyResult. It is the same work on each machine.
const (
	busyLoop   = "n = 0\nfor i in range(5_000_000): n += i & 7\nprint(n)"
	busyResult = "17500000\n"
)

// busyCalls are warm calls that are not over before the bridge starts the next container, which print(1) is: that work has the processor
// that the code runs on, or the other one. No container is started beside the bare exchange.
func (s *suite) busyCalls(ctx context.Context, c *client) {
	var bridge, bare series
	for range s.scale.busy {
		if ctx.Err() != nil {
			break
		}
		_, took, err := c.python(ctx, busyLoop, busyResult, noServers)
		bridge.took(took, err)
		sleep(ctx, pause)
		bare.took(s.exchange(ctx, busyLoop))
		sleep(ctx, pause)
	}
	s.report.figure("c", "warm run_python that computes for about 0.3 s", false, "ms", bridge)
	s.report.figure("c", "the same code in the bare exchange", true, "ms", bare)
	s.report.cost("c", "the bridge and the start of the next container, in a call that computes", differenceOfMedians(bridge.values, bare.values))
}

// exchange is one with a guest that has waited, until it is done.
func (s *suite) exchange(ctx context.Context, code string) (time.Duration, error) {
	g, err := s.engine.launch(ctx, s.container, s.source)
	if err != nil {
		return 0, err
	}
	sleep(ctx, settle)
	m, err := g.execute(s.options, code)
	return m.done, errors.Join(err, g.end(ctx))
}

// warmBursts is eight calls at once, with one container waiting, as is the default, and with eight.
func (s *suite) warmBursts(ctx context.Context, one *client) (err error) {
	eight, err := s.warm(ctx, nil, "MCP_BRIDGE_STANDBY=8")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eight.close()) }()
	var first, second, bare series
	for range s.scale.bursts {
		if ctx.Err() != nil {
			break
		}
		s.burst(ctx, one, &first)
		sleep(ctx, pause)
		s.burst(ctx, eight, &second)
		sleep(ctx, pause)
		s.bareBurst(ctx, &bare)
	}
	n := s.scale.clients
	s.report.figure("c", fmt.Sprintf("%d at once, each of them, one container waiting", n), false, "ms", first)
	s.report.figure("c", fmt.Sprintf("%d at once, each of them, MCP_BRIDGE_STANDBY=8", n), false, "ms", second)
	s.report.figure("c", fmt.Sprintf("%d exchanges at once with as many waiting guests", n), true, "ms", bare)
	return nil
}

func (s *suite) burst(ctx context.Context, c *client, to *series) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range s.scale.clients {
		all.Go(func() {
			_, took, err := c.python(ctx, "print(1)", "1\n", noServers)
			mu.Lock()
			defer mu.Unlock()
			to.took(took, err)
		})
	}
	all.Wait()
}

func (s *suite) bareBurst(ctx context.Context, to *series) {
	all, err := s.exchanges(ctx, s.scale.clients)
	if err != nil {
		to.fail(err)
	}
	for _, m := range all {
		to.took(m.done, nil)
	}
}

// exchanges are so many with as many waiting guests at once: their code is sent when all are ready.
func (s *suite) exchanges(ctx context.Context, n int) (_ []marks, err error) {
	guests := make([]*guest, 0, n)
	defer func() {
		for _, g := range guests {
			g.conn.Close() // so that all end at once
		}
		for _, g := range guests {
			err = errors.Join(err, g.end(ctx))
		}
	}()
	for range n {
		g, err := s.engine.launch(ctx, s.container, s.source)
		if err != nil {
			return nil, err
		}
		guests = append(guests, g)
	}
	sleep(ctx, settle)
	times, errs := make([]marks, n), make([]error, n)
	var all sync.WaitGroup
	for i, g := range guests {
		all.Go(func() { times[i], errs[i] = g.execute(s.options, "print(1)") })
	}
	all.Wait()
	return times, errors.Join(errs...)
}

// settle is for an engine that has just started a container, and as long as a guest of the bridge's has waited for its code.
const settle = pause

// coldCalls is part d: no container waits, as for a first call and for calls back to back.
func (s *suite) coldCalls(ctx context.Context) (err error) {
	if err := s.readyEngine(ctx); err != nil {
		return err
	}
	c, err := s.warm(ctx, nil, "MCP_BRIDGE_STANDBY=0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var bridge, podman series
	for range s.scale.cold {
		if ctx.Err() != nil {
			break
		}
		_, took, err := c.python(ctx, "print(1)", "1\n", noServers)
		bridge.took(took, err)
		sleep(ctx, pause) // its container's end is no part of the next one's turn
		podman.took(s.podmanRun(ctx))
	}
	s.report.figure("d", "run_python print(1), MCP_BRIDGE_STANDBY=0", false, "ms", bridge)
	s.report.figure("d", "podman run --rm of the same image, flags and code", true, "ms", podman)
	s.report.verdict("d", "cold call ≤ 1.1 × podman run, p50", median(bridge.values)/median(podman.values), "times", 1.1)
	return nil
}
