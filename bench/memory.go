package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	upstreams    = 13 // servers
	steadyMB     = 2  // a growth of less is the allocator's
	manyCallers  = 4
	memoryShares = 100 // samples during the many calls
)

// memory is part i: what the bridge takes at rest, with thirteen servers, and over many calls. The memory is that of the bridge's own
// process; podman's service and the servers are processes of their own, and given apart.
func (s *suite) memory(ctx context.Context) error {
	if err := s.resting(ctx); err != nil {
		return err
	}
	if err := s.withServers(ctx); err != nil {
		return err
	}
	return s.manyCalls(ctx)
}

// resting is a bridge that has answered initialize, and then one that has run code and keeps a container.
func (s *suite) resting(ctx context.Context) (err error) {
	c, err := s.serve(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	sleep(ctx, s.scale.rest)
	rest, err := s.resident("at rest, before any call", c)
	if err != nil {
		return err
	}
	s.report.verdict("i", "the bridge at rest ≤ 40 MB", rest, "MB", 40)
	if _, _, err := c.python(ctx, "print(1)", "1\n", noServers); err != nil {
		return err
	}
	sleep(ctx, s.scale.rest)
	_, err = s.resident("after one call, with a container waiting", c)
	return err
}

// resident notes the memory of a bridge, and that of all processes below it.
func (s *suite) resident(when string, c *client) (float64, error) {
	own, err := rss(c.pid())
	if err != nil {
		return 0, err
	}
	below, err := descendants(c.pid())
	if err != nil {
		return 0, err
	}
	s.report.figure("i", "the bridge's memory "+when, false, "MB", series{values: []float64{own}})
	s.report.figure("i", "all its child processes "+when, false, "MB", series{values: []float64{below}})
	return own, nil
}

func (s *suite) withServers(ctx context.Context) (err error) {
	servers := map[string]server{}
	var names []string
	for i := range upstreams {
		name := fmt.Sprintf("shop%02d", i)
		names = append(names, name)
		servers[name] = s.shop()
	}
	c, err := s.serve(ctx, servers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	const code = "print(sum(1 for s in [mcp_servers[n] for n in mcp_servers] if s.echo(text='x') == 'x'))"
	if _, _, err := c.python(ctx, code, fmt.Sprintf("%d\n", upstreams), only(names...)); err != nil {
		return err
	}
	sleep(ctx, s.scale.rest)
	_, err = s.resident(fmt.Sprintf("with %d servers started", upstreams), c)
	return err
}

// manyCalls looks at the memory again and again while many calls are made.
func (s *suite) manyCalls(ctx context.Context) (err error) {
	c, err := s.warm(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	total := s.scale.calls
	every := max(total/memoryShares, 1)
	var calls, own, below series
	var mu sync.Mutex
	var made atomic.Int64
	var all sync.WaitGroup
	for range manyCallers {
		all.Go(func() {
			for n := int(made.Add(1)); n <= total && ctx.Err() == nil; n = int(made.Add(1)) {
				_, took, err := c.python(ctx, "print(1)", "1\n", noServers)
				mu.Lock()
				calls.took(took, err)
				if n%every == 0 {
					sampleMemory(c.pid(), &own, &below)
				}
				mu.Unlock()
				if err != nil {
					sleep(ctx, time.Second)
				}
			}
		})
	}
	all.Wait()
	what := fmt.Sprintf("during %d calls of %d callers", total, manyCallers)
	s.report.figure("i", "each call "+what, false, "ms", calls)
	s.report.figure("i", "the bridge's memory "+what, false, "MB", own)
	s.report.figure("i", "all its child processes "+what, false, "MB", below)
	s.report.verdict("i", fmt.Sprintf("no growth over %d calls: the last quarter's memory is the second's, within %d MB", total, steadyMB),
		growthOf(own.values), "MB", steadyMB)
	if n := len(below.values); n > 0 {
		s.report.note("(i) all child processes (podman's service, the watchdog) had %s MB at the first look and %s MB at the last, %s at most",
			number(below.values[0]), number(below.values[n-1]), number(slices.Max(below.values)))
	}
	return nil
}

func sampleMemory(pid int, own, below *series) {
	v, err := rss(pid)
	if err != nil {
		own.fail(err)
		return
	}
	own.add(v)
	if v, err = descendants(pid); err == nil {
		below.add(v)
	}
}
