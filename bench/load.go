package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// loads is part h: as many calls as can be made for a while, by 1, 2, 4 and 8 callers of one bridge, each of whom makes the next
// call when it has the answer to the last; and podman run in a loop with the same parallelism, half of it before and half of it after, so
// that a machine that becomes slower or faster meanwhile does so for both. The bridge is left to part i.
func (s *suite) loads(ctx context.Context) error {
	if err := s.readyEngine(ctx); err != nil {
		return err
	}
	c, err := s.warm(ctx, nil)
	if err != nil {
		return err
	}
	s.used = &used{client: c}
	for _, n := range s.scale.callers {
		if ctx.Err() != nil {
			break
		}
		if err := s.load(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) load(ctx context.Context, callers int) error {
	c := s.used.client
	calls := loaded{callers: callers, call: func() (time.Duration, error) {
		_, took, err := c.python(ctx, "print(1)", "1\n", noServers)
		return took, err
	}}
	podman := loaded{callers: callers, call: func() (time.Duration, error) { return s.podmanRun(ctx) }}
	if err := podman.sustain(ctx, s.scale.load/2); err != nil {
		return err
	}
	sleep(ctx, settle)
	watching, stop := context.WithCancel(ctx)
	var alive series
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(watching, c.pid(), &alive) })
	err := calls.sustain(ctx, s.scale.load)
	stop()
	watch.Wait()
	s.used.calls += len(calls.each.values) + calls.each.failed
	if err != nil {
		return err
	}
	sleep(ctx, settle)
	if err := podman.sustain(ctx, s.scale.load/2); err != nil {
		return err
	}
	what := fmt.Sprintf("callers: %d, for %v: ", callers, s.scale.load)
	calls.figures(s.report, what, "call", false)
	s.report.figure("h", what+"containers alive", false, "", alive)
	podman.figures(s.report, what, "podman run", true)
	s.report.atLeast("h", fmt.Sprintf("callers: %d, ≥ 1.5 × the rate of as many podman runs", callers), calls.rate()/podman.rate(), "times", 1.5)
	s.say("(h) callers: %d: %s calls/s beside %s podman runs/s", callers, number(calls.rate()), number(podman.rate()))
	return nil
}

// loaded is what so many callers have done.
type loaded struct {
	callers int
	call    func() (time.Duration, error)

	each  series
	took  time.Duration
	work  work
	spans []Span
}

// sustain has callers call again and again for a while. It ends when all have their last answer. A caller whose call fails pauses, so
// that a dead bridge isn't asked a million times.
func (l *loaded) sustain(ctx context.Context, span time.Duration) error {
	before, err := processors()
	if err != nil {
		return err
	}
	begin := time.Now()
	defer func() { l.spans = append(l.spans, Span{begin.UTC(), time.Now().UTC()}) }()
	var all sync.WaitGroup
	var mu sync.Mutex
	for range l.callers {
		all.Go(func() {
			for time.Since(begin) < span && ctx.Err() == nil {
				took, err := l.call()
				mu.Lock()
				l.each.took(took, err)
				mu.Unlock()
				if err != nil {
					sleep(ctx, time.Second)
				}
			}
		})
	}
	all.Wait()
	l.took += time.Since(begin)
	after, err := processors()
	more := after.since(before)
	l.work = work{l.work.busy + more.busy, l.work.stolen + more.stolen, l.work.all + more.all}
	return err
}

// rate is of the calls that have succeeded, per second.
func (l *loaded) rate() float64 { return float64(len(l.each.values)) / l.took.Seconds() }

func (l *loaded) figures(r *Report, what, name string, baseline bool) {
	r.Loads = append(r.Loads, Load{Of: name, Callers: l.callers, Rate: l.rate(), Spans: l.spans})
	r.figure("h", what+name+"s", baseline, "1/s", single(l.rate()))
	r.figure("h", what+"each "+name, baseline, "ms", l.each)
	r.figure("h", what+"processor time, whole machine, each "+name, baseline, "ms", single(l.work.busy/float64(len(l.each.values))))
	r.figure("h", what+"processors busy", baseline, "%", single(l.work.share(l.work.busy)))
}

// used is the bridge of part h, and how many calls it has had.
type used struct {
	client *client
	calls  int
}

// release ends the bridge of part h, unless part i has done so.
func (s *suite) release() error {
	if s.used == nil {
		return nil
	}
	c := s.used.client
	s.used = nil
	return c.close()
}

// watch counts the containers of a bridge at once and then each second.
func (s *suite) watch(ctx context.Context, pid int, to *series) {
	for {
		n, err := alive(pid)
		if err != nil {
			to.fail(err)
		} else {
			to.add(float64(n))
		}
		if !sleep(ctx, min(time.Second, s.scale.load/3)) {
			return
		}
	}
}
