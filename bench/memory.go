package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	upstreams    = 13 // servers
	steadyMB     = 2  // over steadyCalls; a growth of less is the allocator's
	steadyCalls  = 10_000
	manyCallers  = 4
	memoryShares = 100 // samples during the many calls
	toldCalls    = 1000
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

// resident notes the memory of a bridge, that of all processes below it, and that of its containers, which are below none of these. What
// processes share is counted with each.
func (s *suite) resident(when string, c *client) (float64, error) {
	own, err := rss(c.pid())
	if err != nil {
		return 0, err
	}
	children, err := below(c.pid(), rss)
	if err != nil {
		return 0, err
	}
	containers, err := contained(c.pid())
	if err != nil {
		return 0, err
	}
	s.report.figure("i", "the bridge's memory "+when, false, "MB", single(own))
	s.report.figure("i", "all its child processes "+when, false, "MB", single(children))
	s.report.figure("i", "its containers, each with its conmon, "+when, false, "MB", single(containers))
	return own, nil
}

func (s *suite) withServers(ctx context.Context) (err error) {
	servers := s.shops()
	c, err := s.serve(ctx, servers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	const code = "print(sum(1 for s in [mcp_servers[n] for n in mcp_servers] if s.echo(text='x') == 'x'))"
	if _, _, err := c.python(ctx, code, fmt.Sprintf("%d\n", upstreams), only(slices.Sorted(maps.Keys(servers))...)); err != nil {
		return err
	}
	sleep(ctx, s.scale.rest)
	_, err = s.resident(fmt.Sprintf("with %d servers started", upstreams), c)
	return err
}

// manyCalls looks at the memory again and again while many calls are made. Those that a bridge has had in part h count: it is taken
// over, since a second one would have to make them again; but at least half are made here, and only those are looked at.
func (s *suite) manyCalls(ctx context.Context) (err error) {
	if s.used == nil {
		c, err := s.warm(ctx, nil)
		if err != nil {
			return err
		}
		s.used = &used{client: c}
	}
	defer func() { err = errors.Join(err, s.release()) }()
	c, earlier := s.used.client, s.used.calls
	own := max(s.scale.calls-earlier, s.scale.calls/2)
	before, err := processorTimes(c.pid())
	if err != nil {
		return err
	}
	calls, memory, children := s.callAndLook(ctx, c, own)
	after, err := processorTimes(c.pid())
	if err != nil {
		return err
	}
	what := fmt.Sprintf("during %d calls of %d callers", own, manyCallers)
	s.report.figure("i", "each call "+what, false, "ms", calls)
	perCall := func(i int) series { return single((after[i] - before[i]) / float64(own)) }
	s.report.figure("i", "processor time of a call, the bridge", false, "ms", perCall(0))
	s.report.figure("i", "processor time of a call, podman's service and the watchdog", false, "ms", perCall(1))
	s.report.figure("i", "the bridge's memory "+what, false, "MB", memory)
	s.report.figure("i", "all its child processes "+what, false, "MB", children)
	s.report.steady(memory.values, earlier+own, own)
	if earlier > 0 {
		s.report.note("(i) of the %d calls the same bridge had %d in part h, before those that were looked at", earlier+own, earlier)
	}
	if n := len(children.values); n > 0 {
		s.report.note("(i) all child processes (podman's service, the watchdog) had %s MB at the first look and %s MB at the last, %s at most",
			number(children.values[0]), number(children.values[n-1]), number(slices.Max(children.values)))
	}
	return nil
}

// steady judges what a bridge's memory was while so many calls were looked at, of all that it has had. From the middle of the second quarter
// to that of the last it is half of those; what that comes to over steadyCalls is the measure, so that fewer calls aren't easier to
// pass. Of fewer in all nothing can be said but that they have grown it by too much already: Go's heap grows in steps, which hide what a
// few hundred calls leave behind, and shrinks in others.
func (r *Report) steady(looks []float64, all, own int) {
	grown := lastQuarterAboveSecond(looks)
	scale := steadyCalls / (float64(own) / 2)
	over := difference{grown.middle * scale, grown.low * scale, grown.high * scale}
	o := over.within(steadyMB, steadyMB)
	if all < steadyCalls {
		if o = NotResolved; grown.low > steadyMB {
			o = NotMet
		}
	}
	r.judged("i", fmt.Sprintf("no growth over %d calls: at most %d MB, which is %.0f bytes a call; from the second quarter to the last of the %d calls that were looked at, of %d",
		steadyCalls, steadyMB, float64(steadyMB<<20)/steadyCalls, own, all), over.text("MB"), o)
}

// callAndLook makes so many calls and looks at the memory of the bridge and of its child processes memoryShares times meanwhile.
func (s *suite) callAndLook(ctx context.Context, c *client, total int) (calls, memory, children series) {
	every := max(total/memoryShares, 1)
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
					sampleMemory(c.pid(), &memory, &children)
				}
				mu.Unlock()
				if n%toldCalls == 0 {
					s.say("(i) %d of %d calls", n, total)
				}
				if err != nil {
					sleep(ctx, time.Second)
				}
			}
		})
	}
	all.Wait()
	return calls, memory, children
}

// processorTimes are those of a bridge and of all its child processes, which are the same before and after many calls: the watchdog,
// and podman's service.
func processorTimes(pid int) (times [2]float64, err error) {
	if times[0], err = processor(pid); err == nil {
		times[1], err = below(pid, processor)
	}
	return times, err
}

func sampleMemory(pid int, own, children *series) {
	v, err := rss(pid)
	if err != nil {
		own.fail(err)
		return
	}
	own.add(v)
	if v, err = below(pid, rss); err == nil {
		children.add(v)
	}
}
