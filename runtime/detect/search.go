package detect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// search is one look at all candidates, shared by all who wait for it. Its fields are guarded by Driver.mu.
type search struct {
	done    chan struct{}      // closed when chosen or err is set
	all     chan struct{}      // closed when nothing is waited for any more
	cancel  context.CancelFunc // ends what is still under way
	chosen  *engine
	err     error
	waiters int
	surveys int // of the waiters, those that wait for all
}

// begin starts a search. It is called with mu held. Its context is no call's: it ends with the last waiter.
func (d *Driver) begin() *search {
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.Patience)
	s := &search{done: make(chan struct{}), all: make(chan struct{}), cancel: cancel}
	d.going = s
	old := d.resting // it may be starting: it is asked again, and not replaced by another driver
	d.resting = nil
	d.work.Go(func() {
		defer cancel()
		d.look(ctx, s, old)
	})
	return s
}

// wait waits for a search. It is called with mu held, and returns so.
func (d *Driver) wait(ctx context.Context, s *search, all bool) (*engine, error) {
	s.waiters++
	until := s.done
	if all {
		s.surveys++
		until = s.all
	}
	d.mu.Unlock()
	var left error
	select {
	case <-until:
	case <-ctx.Done():
		left = context.Cause(ctx)
	}
	d.mu.Lock()
	if s.waiters--; s.waiters == 0 {
		s.cancel()
		if d.going == s {
			d.going = nil // whoever comes next starts anew
		}
	}
	switch {
	case left != nil:
		return nil, left
	case s.err != nil:
		return nil, s.err
	case s.chosen.retired:
		return nil, &runtime.UnavailableError{Engine: s.chosen.name, Err: errors.New("it went away at once"), Next: "run the call again; if that fails, run: mcp-bridge doctor"}
	}
	return s.chosen, nil
}

// look asks all candidates, decides, hears out the others if somebody waits for that, and closes what wasn't chosen.
func (d *Driver) look(ctx context.Context, s *search, old *engine) {
	p := d.ask(ctx, old)
	p.collect(ctx, d.cfg.Settle)
	kept, more := d.decide(s, p)
	if more {
		p.collect(ctx, 0)
		d.mu.Lock()
		if d.chosen == s.chosen && d.resting == nil {
			d.verdicts = d.judge(p, s.chosen)
		}
		d.mu.Unlock()
	}
	close(s.all)
	s.cancel()
	p.finish(func(e *engine) {
		if e != kept {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.retire(e)
		}
	})
}

// decide makes the choice known. It returns the engine that is not to be closed, if any, and whether somebody waits for the
// answers of the others.
func (d *Driver) decide(s *search, p *poll) (kept *engine, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(s.done)
	if d.going != s || d.closed {
		s.err = &runtime.UnavailableError{Err: errClosed} // nobody waits for it but at the end
		return nil, false
	}
	d.going = nil
	if best := p.best(); best != nil {
		s.chosen, d.chosen = best, best
		d.verdicts = d.judge(p, best)
		d.log.Debug("engine chosen", "engine", best.name, "took", p.answers[best.index].took)
		return best, s.surveys > 0
	}
	d.verdicts = d.judge(p, nil)
	if e := p.dormant(); e != nil {
		d.resting, s.err = e, p.answers[e.index].err
		return e, false
	}
	s.err = d.none()
	return nil, false
}

// judge says what became of each candidate, as of now.
func (d *Driver) judge(p *poll, chosen *engine) []Verdict {
	var all []Verdict
	for i, c := range d.cfg.Candidates {
		v := Verdict{Name: c.Name, Endpoint: c.Endpoint}
		a := p.answers[i]
		switch {
		case a != nil:
			v.Facts, v.Err, v.Took = a.facts, a.err, a.took
			v.Chosen = chosen != nil && chosen.index == i
		case chosen != nil:
			v.Took = time.Since(p.begin)
			v.Err = fmt.Errorf("it had not answered when %s was chosen", chosen.name)
		default:
			v.Took = time.Since(p.begin)
			v.Err = fmt.Errorf("it did not answer within %v", v.Took.Round(time.Millisecond))
		}
		if v.Facts.Endpoint != "" {
			v.Endpoint = v.Facts.Endpoint
		}
		all = append(all, v)
	}
	return all
}

// poll is the candidates' drivers, and what they have answered so far. It belongs to one goroutine.
type poll struct {
	begin    time.Time
	engines  []*engine
	answers  []*answer // nil while there is none
	pending  int
	incoming chan answer
}

// answer is what one candidate said.
type answer struct {
	index int
	facts runtime.Facts
	err   error
	took  time.Duration
}

// ask opens all drivers, but for old, and asks each of them what it is.
func (d *Driver) ask(ctx context.Context, old *engine) *poll {
	n := len(d.cfg.Candidates)
	p := &poll{begin: time.Now(), answers: make([]*answer, n), pending: n, incoming: make(chan answer, n)}
	for i, c := range d.cfg.Candidates {
		e := old
		if old == nil || old.index != i {
			e = &engine{Driver: c.Open(), name: c.Name, index: i}
		}
		p.engines = append(p.engines, e)
		go func() { // ends soon after ctx, by the contract of a Driver; finish waits for it
			f, err := e.Facts(ctx)
			p.incoming <- answer{i, f, err, time.Since(p.begin)}
		}()
	}
	return p
}

// collect takes answers until there are none to come, or no better one can; or when settle is over, if there is a good one by
// then; or until ctx ends. With a settle of 0 it waits for all of them.
func (p *poll) collect(ctx context.Context, settle time.Duration) {
	var over <-chan time.Time
	if settle > 0 {
		timer := time.NewTimer(settle)
		defer timer.Stop()
		over = timer.C
	}
	settled := false
	for p.pending > 0 {
		if settle > 0 && (p.certain() || settled && p.best() != nil) {
			return
		}
		select {
		case a := <-p.incoming:
			p.pending--
			p.answers[a.index] = &a
		case <-over:
			settled = true
		case <-ctx.Done():
			return
		}
	}
}

// finish waits until every driver has answered, and hands each to f.
func (p *poll) finish(f func(*engine)) {
	for i, a := range p.answers {
		if a != nil {
			f(p.engines[i])
		}
	}
	for ; p.pending > 0; p.pending-- {
		a := <-p.incoming
		f(p.engines[a.index])
	}
}

// rank orders candidates; the least is preferred.
func (p *poll) rank(i int) int {
	f := p.answers[i].facts
	if !f.Rootless && !f.Desktop {
		return i + len(p.answers)
	}
	return i
}

// best is the preferred one of those that have answered well, or nil.
func (p *poll) best() *engine {
	var best *engine
	for i, a := range p.answers {
		if a != nil && a.err == nil && (best == nil || p.rank(i) < p.rank(best.index)) {
			best = p.engines[i]
		}
	}
	return best
}

// certain says that no candidate which hasn't answered yet can be preferred to the best that has.
func (p *poll) certain() bool {
	best := p.best()
	if best == nil {
		return false
	}
	for i, a := range p.answers {
		if a == nil && i < p.rank(best.index) {
			return false
		}
	}
	return true
}

// dormant is the preferred one of those at rest, or nil.
func (p *poll) dormant() *engine {
	for i, a := range p.answers {
		var rest *runtime.UnavailableError
		if a != nil && errors.As(a.err, &rest) && rest.Dormant {
			if _, ok := p.engines[i].Driver.(runtime.Starter); ok {
				return p.engines[i]
			}
		}
	}
	return nil
}
