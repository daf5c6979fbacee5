package sandbox

import (
	"context"
	"slices"
	"time"
)

// joinWait is how long a run waits for a guest that is being started already before it starts one of its own: some times what a
// start takes, as far as that is known.
func (b *standby) joinWait() time.Duration { return max(time.Second, 4*b.cost) }

// lend gives a guest that waits, if there is one that answers, or one that is being started. It is the caller's to discard. One that
// has waited may have been sent the order, which is the run's execute, by then: see guest.order.
// The only error is ctx's, which has ended while as many containers as may be were alive.
func (s *Sandbox) lend(ctx context.Context, m machine, order []byte) (*guest, error) {
	turn := s.standby.note()
	defer s.standby.refill()
	for ctx.Err() == nil {
		g := s.standby.take(m)
		if g == nil {
			break
		}
		if s.checked(ctx, g, m, order) {
			return g, nil
		}
	}
	if p, wait := s.standby.join(turn); p != nil {
		s.standby.refill() // what was begun for the next run is this one's
		if g := s.lendStarting(ctx, m, order, p, wait); g != nil {
			return g, nil
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return s.lendNew(ctx, m, order, turn)
}

// checked says whether a guest is fit for a run and answers. Else it is discarded.
func (s *Sandbox) checked(ctx context.Context, g *guest, m machine, order []byte) bool {
	if s.standby.fit(g, m) && g.order(ctx, order) {
		s.standby.proved()
		return true
	}
	if g.over() && ctx.Err() == nil { // not for its age or its image, nor because the run was given up
		s.standby.unanswered()
	}
	s.discard(g)
	return false
}

// lendStarting waits for a guest that was begun for the next run, which takes less time than to begin one now. It gives nil when
// there came none that is fit.
func (s *Sandbox) lendStarting(ctx context.Context, m machine, order []byte, p *place, wait time.Duration) *guest {
	late := time.NewTimer(wait)
	defer late.Stop()
	var g *guest
	select {
	case g = <-p.ready:
	case <-late.C:
		g = s.standby.leave(p)
	case <-ctx.Done():
		s.standby.keepReady(s.standby.leave(p))
		return nil
	}
	if g == nil || !s.checked(ctx, g, m, order) {
		return nil
	}
	return g
}

// lendNew starts a guest. While as many containers as may be are alive, it waits until one is gone, or a guest that is being
// started ahead is ready, and notes for how long: an engine that hangs takes half a minute until its driver gives a container up.
func (s *Sandbox) lendNew(ctx context.Context, m machine, order []byte, turn uint64) (*guest, error) {
	select {
	case s.containers <- struct{}{}:
		return s.startGuest(m), nil
	default:
	}
	for began := time.Now(); ; {
		p := s.standby.wait(turn)
		select {
		case s.containers <- struct{}{}:
			s.standby.keepReady(s.standby.leave(p)) // both may have been there
			g := s.startGuest(m)
			g.room = g.begun.Sub(began)
			return g, nil
		case g := <-p.ready:
			room := time.Since(began)
			if s.checked(ctx, g, m, order) {
				g.room = room
				return g, nil
			}
		case <-ctx.Done():
			s.standby.keepReady(s.standby.leave(p))
			return nil, context.Cause(ctx)
		}
	}
}

// place is a run's in the line for guests that are being started.
type place struct {
	turn   uint64
	counts bool        // on a guest that is being started: where that fails, the run is told
	ready  chan *guest // has room for one; nil is for one that could not be started
}

// join enters the line of runs that the next guests are for, if more of those are being started than runs wait for, and says
// how long one should wait there. Else it gives nil.
func (b *standby) join(turn uint64) (*place, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.starting <= len(b.line) {
		return nil, 0
	}
	return b.enter(turn, true), b.joinWait()
}

// wait enters the same line, whatever is being started.
func (b *standby) wait(turn uint64) *place {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.enter(turn, false)
}

// enter gives a run its place: one that was in the line before, in vain, comes before those that came after it. It is called with mu held.
func (b *standby) enter(turn uint64, counts bool) *place {
	p := &place{turn, counts, make(chan *guest, 1)}
	i := slices.IndexFunc(b.line, func(other *place) bool { return other.turn > turn })
	if i < 0 {
		i = len(b.line)
	}
	b.line = slices.Insert(b.line, i, p)
	return p
}

// release lets those go who count on guests that have not come to be: the last in the line, beyond as many as are being started. It is
// called with mu held.
func (b *standby) release() {
	for i := len(b.line) - 1; i >= b.starting; i-- {
		if p := b.line[i]; p.counts {
			b.line = slices.Delete(b.line, i, i+1)
			p.ready <- nil
		}
	}
}

// leave leaves the line, and gives the guest that was handed over meanwhile, if there is one.
func (b *standby) leave(p *place) *guest {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.line, p); i >= 0 {
		b.line = slices.Delete(b.line, i, i+1)
		return nil
	}
	return <-p.ready
}

// keepReady puts a guest back that a run was handed and doesn't take; nil is none.
func (b *standby) keepReady(g *guest) {
	if g == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.await(g)
}

// discard ends a guest that startGuest gave, off everybody's path; Close waits for it. How its container ends is of no interest then, if it
// hasn't. It is called once for each, by something that Close waits for, or by Close.
func (s *Sandbox) discard(g *guest) {
	g.unasked.Store(true) // before its streams end for want of us
	g.hangUp()
	s.runs.Go(func() {
		g.end()
		<-s.containers
		if g.err != nil {
			s.log.Debug("a container's end", "err", g.err)
		}
		s.standby.refill()
	})
}
