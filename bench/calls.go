package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// warmCalls is part c: calls that find a container waiting, one after the other and eight at once. Beside them stands the exchange
// with a waiting guest that nothing is between but podman's own streams, and podman run. They take turns in blocks, so that
// no container of a baseline is started in the bridge's pauses.
func (s *suite) warmCalls(ctx context.Context) (err error) {
	if err := s.readyEngine(ctx); err != nil {
		return err
	}
	c, err := s.warm(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var bridge, bare, started, output, podman series
	for len(bridge.values)+bridge.failed < s.scale.warm && ctx.Err() == nil {
		for range s.scale.block {
			_, took, err := c.python(ctx, "print(1)", "1\n", noServers)
			bridge.took(took, err)
			sleep(ctx, pause)
		}
		for range s.scale.block * s.scale.bare / s.scale.warm {
			one, err := s.exchanges(ctx, 1)
			if err != nil {
				bare.fail(err)
				continue
			}
			bare.took(one[0].done, nil)
			started.took(one[0].started, nil)
			output.took(one[0].output, nil)
		}
		if len(podman.values) < s.scale.podman {
			podman.took(s.podmanRun(ctx))
			podman.took(s.podmanRun(ctx))
		}
		sleep(ctx, pause)
	}
	s.report.figure("c", "warm run_python print(1), 300 ms apart", false, "ms", bridge)
	s.report.figure("c", "execute → done with a waiting guest, no bridge", true, "ms", bare)
	s.report.figure("c", "of that, execute → started: the guest has read it", true, "ms", started)
	s.report.figure("c", "of that, execute → what the code has printed", true, "ms", output)
	s.report.figure("c", "podman run of the same", true, "ms", podman)
	s.report.cost("c", "the bridge, in a warm call", differenceOfMedians(bridge.values, bare.values))
	s.report.verdict("c", "warm call ≤ 1 ms above the bare exchange, p50", median(bridge.values)-median(bare.values), "ms", 1)
	s.report.verdict("c", "warm call ≤ 25 ms, p99", quantile(bridge.values, 0.99), "ms", 25)
	s.report.atLeast("c", "warm call ≥ 50 times faster than podman run, p50", median(podman.values)/median(bridge.values), "times", 50)
	return s.warmBursts(ctx, c)
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
