package detect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// acquire returns the engine in use. Where there isn't one, it searches, or waits for another
// caller's search and shares its outcome. With all set, its search waits until every candidate has
// answered.
func (d *Driver) acquire(ctx context.Context, all bool) (*engine, error) {
	d.mu.Lock()
	e, before := d.chosen, d.searches
	d.mu.Unlock()
	if e != nil {
		return e, nil
	}
	ctx, done, err := d.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	d.mu.Lock()
	e, err = d.chosen, d.err
	shared := d.searches > before && err != nil
	d.mu.Unlock()
	switch {
	case e != nil:
		return e, nil
	case shared:
		return nil, err
	}
	return d.search(ctx, all)
}

// take waits until no other caller searches or starts an engine. The context that it returns ends
// with ctx and with the driver; done must be called.
func (d *Driver) take(ctx context.Context) (life context.Context, done func(), err error) {
	life, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.life, func() { cancel(&runtime.UnavailableError{Err: errClosed}) })
	select {
	case d.turn <- struct{}{}:
		if d.life.Err() == nil {
			return life, func() { stop(); cancel(nil); <-d.turn }, nil
		}
		<-d.turn
		err = &runtime.UnavailableError{Err: errClosed}
	case <-life.Done():
		err = context.Cause(life)
	}
	stop()
	cancel(nil)
	return nil, nil, err
}

// search asks all candidates and chooses one. It chooses nothing when ctx has ended meanwhile.
func (d *Driver) search(ctx context.Context, all bool) (*engine, error) {
	asking, cancel := context.WithTimeout(ctx, d.cfg.Patience)
	defer cancel() // ends what is still under way
	p := d.ask(asking)
	defer d.dismiss(p)
	p.collect(asking, d.cfg.Settle)
	best := p.best()
	if best != nil && all {
		p.collect(asking, 0)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.searches++
	d.verdicts, d.err, d.resting = d.judge(p, best), nil, nil
	if best != nil {
		best.used = true
		d.chosen = best
		d.log.Debug("engine chosen", "engine", best.name, "took", p.answers[best.index].took)
		return best, nil
	}
	if d.resting = p.dormant(); d.resting != nil {
		d.err = p.answers[d.resting.index].err
	} else {
		d.err = d.none()
	}
	return nil, d.err
}

// dismiss keeps the engines that were chosen once, or are at rest, and closes the others once they
// have answered.
func (d *Driver) dismiss(p *poll) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var passed []*engine
	for i, e := range p.engines {
		if d.open[i] = e; !e.used && e != d.resting {
			d.open[i] = nil
			passed = append(passed, e)
		}
	}
	d.closing.Go(func() {
		for ; p.pending > 0; p.pending-- {
			<-p.incoming
		}
		for _, e := range passed {
			if err := e.Close(); err != nil {
				d.log.Warn("an engine's driver was not closed", "engine", e.name, "err", err)
			}
		}
	})
}

// judge returns what became of each candidate, as of now.
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
	answers  []*answer // nil while there isn't one
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

// ask opens the drivers that aren't open, and asks each of all what it is.
func (d *Driver) ask(ctx context.Context) *poll {
	n := len(d.cfg.Candidates)
	p := &poll{begin: time.Now(), answers: make([]*answer, n), pending: n, incoming: make(chan answer, n)}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, c := range d.cfg.Candidates {
		e := d.open[i]
		if e == nil {
			e = &engine{Driver: c.Open(), name: c.Name, index: i}
		}
		p.engines = append(p.engines, e)
		go func() { // ends soon after ctx, by the contract of a Driver; dismiss waits for it
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

// rank orders candidates; the least is preferred.
func (p *poll) rank(i int) int {
	if !p.wall(p.engines[i]) {
		return i + len(p.answers)
	}
	return i
}

// wall reports whether a flaw in an engine that has answered well would stay in it: it is rootless,
// or in a machine of its own.
func (p *poll) wall(e *engine) bool {
	f := p.answers[e.index].facts
	return f.Rootless || f.Desktop
}

// best returns the preferred one of those that have answered well, or nil.
func (p *poll) best() *engine {
	var best *engine
	for i, a := range p.answers {
		if a != nil && a.err == nil && (best == nil || p.rank(i) < p.rank(best.index)) {
			best = p.engines[i]
		}
	}
	return best
}

// certain reports that no candidate which hasn't answered yet can be preferred to the best that
// has.
func (p *poll) certain(best *engine) bool {
	for i, a := range p.answers {
		if a == nil && i < p.rank(best.index) {
			return false
		}
	}
	return true
}

// dormant returns the preferred one of those at rest, or nil.
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
