package detect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// search is one look at all candidates, shared by all who wait for it. Its fields are guarded by
// Driver.mu.
type search struct {
	done    chan struct{}      // closed when chosen or err is set
	all     chan struct{}      // closed when nothing is waited for any more
	cancel  context.CancelFunc // ends what is still under way
	resting *engine            // Driver's, as of the beginning
	chosen  *engine
	err     error
	waiters int
	surveys int // of the waiters, those that wait for all
}

// begin starts a search. It is called with mu held. Its context is no call's: it ends with the last
// waiter.
func (d *Driver) begin() *search {
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.Patience)
	s := &search{done: make(chan struct{}), all: make(chan struct{}), cancel: cancel, resting: d.resting}
	d.going = s
	d.resting = nil // it may be starting: it is asked again, and not replaced by another driver
	d.work.Go(func() {
		defer cancel()
		d.look(ctx, s)
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
			d.going = nil // the next caller starts another
			if !d.closed {
				d.resting = s.resting
			}
		}
	}
	switch {
	case left != nil:
		return nil, left
	case d.closed: // after the choice, and before this waiter woke
		return nil, &runtime.UnavailableError{Err: errClosed}
	case s.err != nil:
		return nil, s.err
	case d.chosen == nil:
		return nil, &runtime.UnavailableError{Engine: s.chosen.name, Err: errors.New("it went away at once"),
			Next: "run the call again; if that fails, run: mcp-bridge doctor", Gone: true}
	}
	return d.chosen, nil
}

// look asks all candidates, decides, hears out the others if somebody waits for that, and closes
// what isn't kept.
func (d *Driver) look(ctx context.Context, s *search) {
	p := d.ask(ctx)
	p.collect(ctx, d.cfg.Settle)
	if d.decide(s, p) {
		p.collect(ctx, 0)
		d.mu.Lock()
		if d.chosen == s.chosen && d.resting == nil {
			d.verdicts = d.judge(p, s.chosen)
		}
		d.mu.Unlock()
	}
	close(s.all)
	s.cancel()
	p.finish(d.dismiss)
}

// dismiss releases an engine that has answered to a search, and closes it if it isn't kept.
func (d *Driver) dismiss(e *engine) {
	d.mu.Lock()
	if d.kept[e.index] != e {
		d.retire(e)
	}
	d.mu.Unlock()
	d.release(e)
}

// decide makes the choice known, and says whether somebody waits for the answers of the others.
func (d *Driver) decide(s *search, p *poll) (more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(s.done)
	if d.going != s || d.closed {
		s.err = &runtime.UnavailableError{Err: errClosed} // only Close can have come before
		return false
	}
	d.going = nil
	if old := s.resting; old != nil && !old.used {
		d.kept[old.index] = nil // except what is chosen now, or still at rest
	}
	if best := p.best(); best != nil {
		s.chosen = best
		d.choose(best)
		d.verdicts = d.judge(p, best)
		d.log.Debug("engine chosen", "engine", best.name, "took", p.answers[best.index].took)
		return s.surveys > 0
	}
	d.verdicts = d.judge(p, nil)
	if e := p.dormant(); e != nil {
		d.resting, d.kept[e.index], s.err = e, e, p.answers[e.index].err
		return false
	}
	s.err = d.none()
	return false
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

// ask opens the drivers that aren't kept, and asks each of all what it is.
func (d *Driver) ask(ctx context.Context) *poll {
	n := len(d.cfg.Candidates)
	p := &poll{begin: time.Now(), answers: make([]*answer, n), pending: n, incoming: make(chan answer, n)}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, c := range d.cfg.Candidates {
		e := d.kept[i]
		if e == nil {
			e = &engine{Driver: c.Open(), name: c.Name, index: i}
		}
		d.hold(e)
		p.engines = append(p.engines, e)
		go func() { // ends soon after ctx, by the contract of a Driver; finish waits for it
			f, err := e.Facts(ctx)
			p.incoming <- answer{i, f, err, time.Since(p.begin)}
		}()
	}
	return p
}

// collect takes answers until there are none to come, or no better one can; or when settle is over,
// if there is a good one by then that is the wall itself; or until ctx ends. With a settle of 0 it
// waits for all of them.
func (p *poll) collect(ctx context.Context, settle time.Duration) {
	var over <-chan time.Time
	if settle > 0 {
		timer := time.NewTimer(settle)
		defer timer.Stop()
		over = timer.C
	}
	settled := false
	for p.pending > 0 {
		if best := p.best(); settle > 0 && best != nil && (p.certain(best) || settled && p.wall(best)) {
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
	if !p.wall(p.engines[i]) {
		return i + len(p.answers)
	}
	return i
}

// wall says whether a flaw in an engine that has answered well would stay in it: it is rootless, or
// in a machine of its own.
func (p *poll) wall(e *engine) bool {
	f := p.answers[e.index].facts
	return f.Rootless || f.Desktop
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
func (p *poll) certain(best *engine) bool {
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
