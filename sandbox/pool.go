package sandbox

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Times of the pool that need no tuning.
const (
	warmAge     = 10 * time.Minute      // the longest that a guest waits for its run
	refillDelay = 20 * time.Millisecond // so that what was just begun runs first
	firstRetry  = time.Second           // after a start that failed; twice as long after each further one
	lastRetry   = time.Minute
	provenAge   = time.Minute // of a guest that shows that guests don't just die
)

// A class is what a warm guest must have in common with the run that gets it.
type class struct {
	engine, endpoint, image string
	ownUsers                bool
	enforces                runtime.Enforced
	limits                  runtime.Limits // of its environment
	age                     time.Duration  // machine.age
}

func (m machine) class() class {
	c := class{engine: m.facts.Engine, endpoint: m.facts.Endpoint, image: m.image().ID,
		ownUsers: m.facts.OwnUsers, enforces: m.facts.Enforces, age: m.age}
	if m.env != nil {
		c.limits = m.env.Limits
	}
	return c
}

// pool keeps Config.Standby guests warm from the first run on, until there was none for
// Config.StandbyIdle. The guests themselves are admission's. Each environment that a run used
// within that time has one guest, the most used first; that one has all that are left over.
type pool struct {
	sandbox *Sandbox
	wake    chan struct{} // full when a guest was taken or lost

	mu       sync.Mutex
	keeping  bool
	used     time.Time // when a run last asked for a guest
	kinds    []*kind   // the most used first
	recent   []*kind   // of the last runs, oldest first
	failures int       // starts that failed and guests that died, since one served a run or lived for provenAge
	retry    time.Time // no start before that
}

// pop takes the oldest guest of a class that is still alive. It is called with mu held.
func (a *admission) pop(c class) *guest {
	for len(a.warm[c]) > 0 {
		g := a.warm[c][0]
		a.warm[c] = a.warm[c][1:]
		if !g.over() && time.Since(g.begun) < warmAge {
			return g
		}
		g.discard()
	}
	return nil
}

// keepWarm records that a run in an environment asks for a guest, and refills the pool.
func (p *pool) keepWarm(e *Environment) {
	s := p.sandbox
	if s.cfg.Standby == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = time.Now()
	p.use(e)
	if !p.keeping && s.enter() == nil {
		p.keeping = true
		go p.refill()
	}
	p.nudge()
}

func (p *pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// refill starts what is missing, one at a time, and sees that those that wait still answer. It ends
// with the sandbox, or when no run has come for Config.StandbyIdle.
func (p *pool) refill() {
	s := p.sandbox
	defer s.runs.Done()
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	soon := time.NewTimer(refillDelay)
	soon.Stop()
	defer soon.Stop()
	for waits := false; ; {
		select {
		case <-s.life.Done():
			return
		case <-p.wake:
			if !waits { // calls that follow each other closely must not put it off for ever
				soon.Reset(refillDelay)
				waits = true
			}
			continue
		case <-soon.C:
			waits = false
		case <-tick.C:
			p.inspect()
		}
		for p.startMissing() {
		}
		if p.idle() {
			return
		}
	}
}

// idle reports whether no run has come for so long that no guest is kept warm, and retires them
// then.
func (p *pool) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.used) < p.sandbox.cfg.StandbyIdle {
		return false
	}
	p.keeping = false
	p.sandbox.admission.retire(func(*guest) bool { return true })
	return true
}

// startMissing starts one guest if one is missing and may be started now, and reports whether it
// did.
func (p *pool) startMissing() bool {
	s := p.sandbox
	m := s.found()
	if m == nil || s.life.Err() != nil {
		return false // the next run looks for the engine
	}
	wants := p.wants(m)
	s.admission.retire(func(g *guest) bool { return !wants.take(g) })
	p.mu.Lock()
	may := time.Since(p.used) < s.cfg.StandbyIdle && !time.Now().Before(p.retry)
	p.mu.Unlock()
	if !may {
		return false
	}
	for _, w := range wants {
		if w.missing > 0 && s.admission.reserve(w.machine.class(), math.MaxInt) {
			return p.start(m, w)
		}
	}
	return false
}

// start starts a guest that is wanted, and reports whether it is warm now. The caller has reserved
// room for it. found is the machine without an environment.
func (p *pool) start(found *machine, w *want) bool {
	s := p.sandbox
	g := s.startGuest(w.machine, w.ahead)
	stop := context.AfterFunc(s.life, func() { g.kill(ErrClosed) })
	defer stop()
	bad := g.await(s.cfg.StartTimeout)
	if g.up.IsZero() || bad > 0 {
		cause := context.Cause(g.life)
		g.discard()
		if cause == nil && g.goneWithin(exitGrace) {
			cause = g.err
		}
		again, pause := p.notStarted(w)
		if s.life.Err() == nil {
			s.log.Warn("a container could not be started ahead", "environment", w.machine.env.name(),
				"cause", cause, "said", g.stderr.String(), "bad_frames", bad, "pause", pause)
		}
		return again
	}
	if failed := w.failed(g.hello.Failed); len(failed) > 0 {
		s.log.Debug("modules could not be imported ahead", "environment", w.machine.env.name(), "modules", failed)
	}
	if now := s.renew(s.life, found); now != nil {
		g.machine = now.in(w.machine.env) // the driver may have learned what its engine can't do
		if c := g.machine.class(); c != g.class && len(w.ahead) > 0 {
			g.discard() // its imports had the limits for another engine
			return true
		}
		g.class = g.machine.class()
	}
	s.admission.add(g)
	return true
}

// reserve takes room for one more guest of a class, if fewer than most are warm.
func (a *admission) reserve(c class, most int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.warm[c]) >= most || a.containers >= a.maxContainers {
		return false
	}
	a.containers++
	return true
}

// add makes a guest warm, or gives it to the run that is first in the queue.
func (a *admission) add(g *guest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		g.discard()
		return
	}
	a.warm[g.class] = append(a.warm[g.class], g)
	a.keep(g)
}

// keep gives a guest that has become warm to the first run in the queue, or keeps it unless enough
// are warm already. It is called with mu held.
func (a *admission) keep(g *guest) {
	a.grant()
	warm := 0
	for _, guests := range a.warm {
		warm += len(guests)
	}
	if i := slices.Index(a.warm[g.class], g); i >= 0 && warm > a.standby {
		a.warm[g.class] = slices.Delete(a.warm[g.class], i, i+1)
		g.discard()
	}
}

// close retires all warm guests, and every one that comes back later.
func (a *admission) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, guests := range a.warm {
		for _, g := range guests {
			g.discard()
		}
	}
	clear(a.warm)
}

// retire ends the warm guests that which selects.
func (a *admission) retire(which func(*guest) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c, guests := range a.warm {
		a.warm[c] = slices.DeleteFunc(guests, func(g *guest) bool {
			retired := which(g)
			if retired {
				g.discard()
			}
			return retired
		})
		if len(a.warm[c]) == 0 {
			delete(a.warm, c)
		}
	}
}

// inspect pings the warm guests, which would end themselves otherwise, and retires those that don't
// answer or are too old.
func (p *pool) inspect() {
	s := p.sandbox
	s.admission.mu.Lock()
	var list []*guest
	for _, guests := range s.admission.warm {
		list = append(list, guests...)
	}
	s.admission.mu.Unlock()
	var all sync.WaitGroup
	for _, g := range list {
		all.Go(func() {
			old := time.Since(g.begun) >= warmAge
			switch {
			case old || !g.check(s.life):
				found := false
				s.admission.retire(func(warm *guest) bool {
					found = found || warm == g
					return warm == g
				})
				if found && !old { // with no lock held: p.mu comes before that of admission
					p.died(g)
				}
			case time.Since(g.up) >= provenAge:
				p.proved()
			}
		})
	}
	all.Wait()
}

// proved ends the pause after failures: guests live as they should.
func (p *pool) proved() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures, p.retry = 0, time.Time{}
}

// failed makes the next start wait, longer after each failure.
func (p *pool) failed() (pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures++
	pause = min(lastRetry, firstRetry<<min(p.failures-1, 10))
	p.retry = time.Now().Add(pause)
	return pause
}
