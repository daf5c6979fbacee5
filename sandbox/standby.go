package sandbox

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Times of the standbys that nobody has a reason to tune.
const (
	standbyAge  = 10 * time.Minute      // the longest that a guest waits for its run
	pongWait    = time.Second           // for a guest's answer before it is lent, or while it waits
	refillDelay = 20 * time.Millisecond // on average, from a run's beginning to the start of what takes its guest's place
	demandSpan  = time.Minute           // over which it is seen how runs come
	maxAsked    = 64                    // runs that are remembered for that
	firstRetry  = time.Second           // after a start that failed; twice as long after each further one
	lastRetry   = time.Minute
	provenAge   = time.Minute // of a guest that has shown that guests don't just die
)

// standby keeps guests that are ready and wait for a run. There is none before the first run. Their number follows the demand:
// of late never more runs were asked for within the time that a start takes, so that none of those would have waited; one at the
// least, and Config.Standby at the most.
type standby struct {
	sandbox *Sandbox

	mu       sync.Mutex
	waiting  []*guest // oldest first; each holds one of Sandbox.containers
	starting int
	asked    []time.Time   // when the last runs were asked for, oldest first, at most maxAsked
	last     time.Time     // the last of them, ever
	cost     time.Duration // what a start takes, smoothed
	failures int           // starts that failed, and guests that died, since one was lent or waited for provenAge
	retry    time.Time     // no start before that
	turns    uint64        // of runs, counted
	line     []*place      // runs that wait for the next guest that is ready, by their turn
	keeping  bool          // the keeper runs
	closed   bool
	wake     chan struct{} // tells the keeper to look
}

func (b *standby) init(s *Sandbox) { b.sandbox, b.wake = s, make(chan struct{}, 1) }

func (b *standby) max() int { return b.sandbox.cfg.Standby }

// note counts one more run, and gives its turn.
func (b *standby) note() (turn uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turns++
	if b.max() > 0 {
		b.last = time.Now()
		b.asked = append(slices.Delete(b.asked, 0, max(0, len(b.asked)-maxAsked+1)), b.last)
	}
	return b.turns
}

// take gives the oldest guest that waits, if it is of this machine, has an image, limits and a user that a run would get, and is
// not too old. Others are destroyed.
func (b *standby) take(m machine) *guest {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.waiting) > 0 {
		g := b.waiting[0]
		b.waiting = slices.Delete(b.waiting, 0, 1)
		if b.fit(g, m) {
			return g
		}
		if g.over() {
			b.failed()
		}
		b.sandbox.discard(g)
	}
	return nil
}

// has says whether a guest waits that take would give.
func (b *standby) has(m machine) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.waiting, func(g *guest) bool { return b.fit(g, m) })
}

func (b *standby) fit(g *guest, m machine) bool {
	return !g.over() && time.Since(g.begun) < standbyAge &&
		g.machine.image.ID == m.image.ID && g.machine.facts.Endpoint == m.facts.Endpoint && g.machine.facts.Engine == m.facts.Engine &&
		g.machine.facts.OwnUsers == m.facts.OwnUsers && g.machine.facts.Enforces == m.facts.Enforces
}

// want is how many guests are to wait now. It is called with mu held.
func (b *standby) want(now time.Time) int {
	if b.closed || b.last.IsZero() || now.Sub(b.last) >= b.sandbox.cfg.StandbyIdle {
		return 0
	}
	return min(b.max(), max(1, b.peak(now)))
}

// peak is the most runs that were asked for within the time of a start, of late. It is called with mu held.
func (b *standby) peak(now time.Time) (most int) {
	first := 0
	for i, t := range b.asked {
		if now.Sub(t) > demandSpan {
			first = i + 1
			continue
		}
		for t.Sub(b.asked[first]) > b.cost+refillDelay {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// refill has the keeper look, which is started if it doesn't run.
func (b *standby) refill() {
	if b.max() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	if !b.keeping {
		if b.sandbox.enter() != nil {
			return
		}
		b.keeping = true
		go b.keep()
		return
	}
	b.nudge()
}

func (b *standby) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// keep is the keeper: it starts guests, sees that those that wait still answer, and ends when none is wanted any more.
func (b *standby) keep() {
	defer b.sandbox.runs.Done()
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	delay := time.NewTimer(jittered(refillDelay)) // what has just been lent runs first
	defer delay.Stop()
	soon := true // the delay is that of a refill
	for {
		select {
		case <-b.sandbox.life.Done():
			return
		case <-b.wake:
			if !soon {
				delay.Reset(jittered(refillDelay))
				soon = true
			}
			continue
		case <-delay.C:
			soon = false
		case <-tick.C:
			b.inspect()
		}
		again, end := b.adjust(time.Now())
		if end {
			return
		}
		if again > 0 {
			delay.Reset(again)
		}
	}
}

// jittered is d on average: bridges that were woken by one thing should not all go on at once.
func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// inspect pings the guests that wait, which would end themselves otherwise, and destroys those that don't answer.
func (b *standby) inspect() {
	b.mu.Lock()
	list := slices.Clone(b.waiting)
	b.mu.Unlock()
	var all sync.WaitGroup
	for _, g := range list {
		all.Go(func() {
			old := time.Since(g.begun) >= standbyAge
			switch {
			case old || !g.check(b.sandbox.life):
				b.drop(g, !old)
			case time.Since(g.up) >= provenAge:
				b.proved()
			}
		})
	}
	all.Wait()
}

// proved is for when guests live as they should.
func (b *standby) proved() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.retry = 0, time.Time{}
}

// failed has the next start wait, longer after each failure. It is called with mu held.
func (b *standby) failed() (pause time.Duration) {
	b.failures++
	pause = min(lastRetry, firstRetry<<min(b.failures-1, 10))
	pause = jittered(pause)
	b.retry = time.Now().Add(pause)
	return pause
}

// drop destroys a guest, if it still waits, and says whether it did. One that is bad has the next start wait: whatever made it so may
// do so again.
func (b *standby) drop(g *guest, bad bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, g)
	if i < 0 {
		return false // it was lent, or is dropped already
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	if bad {
		b.failed()
	}
	b.sandbox.discard(g)
	return true
}

// unanswered is told of a guest that was to be lent, and did not answer.
func (b *standby) unanswered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed()
}

// adjust starts or destroys guests until as many wait as are wanted, says after what time to look again, if at all before a
// tick, and whether the keeper is to end.
func (b *standby) adjust(now time.Time) (again time.Duration, end bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	want := b.want(now)
	for len(b.waiting) > want {
		b.sandbox.discard(b.waiting[0])
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
	if want == 0 && b.starting == 0 {
		b.keeping = false
		return 0, true
	}
	// Several starts at once take longer each: two at most. Those that runs wait for aren't what is wanted.
	if len(b.waiting)+b.starting >= want+len(b.line) || b.starting >= 2 {
		return 0, false
	}
	if wait := b.retry.Sub(now); wait > 0 {
		return wait, false
	}
	m := b.sandbox.found()
	if m == nil {
		return 0, false // the engine is away; the next run looks for it
	}
	select {
	case b.sandbox.containers <- struct{}{}:
	default:
		return 0, false // all are in use; whoever gives one back wakes the keeper
	}
	if b.sandbox.enter() != nil {
		<-b.sandbox.containers
		return 0, false
	}
	b.starting++
	go b.start(m)
	return 0, false
}

// start makes one guest ready, and has it wait.
func (b *standby) start(m *machine) {
	s := b.sandbox
	defer s.runs.Done()
	g := s.startGuest(*m)
	stop := context.AfterFunc(s.life, func() { g.kill(ErrClosed) })
	bad := g.await(s.cfg.StartTimeout)
	stop()
	pause, fit := b.started(g, bad)
	switch {
	case fit:
		b.learn(g, s.renew(s.life, m))
	case s.life.Err() == nil: // said without the lock: nobody may read the log
		s.log.Warn("a container could not be started ahead", "cause", context.Cause(g.life), "said", g.stderr.String(), "bad_frames", bad, "pause", pause)
	}
}

// started is told how a start went. It says whether it gave a guest that is fit for a run, and else how long the next one waits.
func (b *standby) started(g *guest, bad int) (pause time.Duration, fit bool) {
	s := b.sandbox
	b.mu.Lock()
	defer b.mu.Unlock()
	b.starting--
	defer b.nudge()
	if g.up.IsZero() || bad > 0 {
		pause = b.failed()
		s.discard(g)
		b.release()
		return pause, false
	}
	took := g.up.Sub(g.begun)
	if b.cost += (took - b.cost) / 4; b.cost == 0 {
		b.cost = took
	}
	b.await(g)
	b.release() // it may have gone to a run that counted on no start
	return 0, true
}

// learn keeps what the driver says of the engine now that it has started a guest in it, for as long as that guest waits: nobody asks
// again before it is lent. A run that has it already made its order by what was known before, as it does with a guest of its own.
func (b *standby) learn(g *guest, now *machine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now != nil && slices.Contains(b.waiting, g) {
		g.machine = *now
	}
}

// await has a guest wait for its run, or gives it to a run that waits. It is called with mu held.
func (b *standby) await(g *guest) {
	switch {
	case b.closed:
		b.sandbox.discard(g)
		return
	case len(b.line) > 0:
		b.line[0].ready <- g // it has room for one
		b.line = slices.Delete(b.line, 0, 1)
		return
	}
	g.expect(b.sandbox.expectation())
	b.waiting = append(b.waiting, g)
	// One that dies while it waits is replaced, after a pause: whatever kills it may do so again.
	b.sandbox.runs.Go(func() {
		<-g.quiet
		if b.drop(g, true) {
			b.nudge()
		}
	})
}

// close destroys all that wait and has no further ones started. The keeper ends with the sandbox's life.
func (b *standby) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, g := range b.waiting {
		b.sandbox.discard(g)
	}
	b.waiting = nil
}
