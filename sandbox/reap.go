package sandbox

import (
	"context"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	reapEvery   = time.Minute
	reapTimeout = 30 * time.Second // of one look by the reaper
	reapGrace   = 5 * time.Second  // what is left of that once the sandbox is closed
)

// reap removes the containers of dead bridges. Whose owner is dead is decided by process, boot and
// start of the process, never by an age: the machine's clock may be set at any time.
func (s *Sandbox) reap(ctx context.Context) error {
	gone, err := runtime.Reap(ctx, s.driver, s.cfg.Owner)
	for _, o := range gone {
		s.log.Info("container of a dead bridge is removed", "container", o.Name, "owner_pid", o.Owner.PID,
			"was_running", o.Running)
	}
	return err
}

// reapSoon has the reaper look at once, and starts it if it doesn't run yet. Only Close waits for
// it: a dead bridge's containers may take their time to end, and no run needs them gone.
func (s *Sandbox) reapSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.reaper == nil {
		s.reaper = make(chan struct{}, 1)
		s.runs.Go(s.keepReaping)
	}
	select {
	case s.reaper <- struct{}{}:
	default: // it is to look already
	}
}

// keepReaping is the reaper. It ends with Close, after its first look: a bridge that is used once
// does its share too.
func (s *Sandbox) keepReaping() {
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	<-s.reaper
	s.reapNow()
	for s.life.Err() == nil {
		select {
		case <-s.life.Done():
			return
		case <-s.reaper:
			s.reapNow()
		case <-tick.C:
			s.reapAgain()
		}
	}
}

// reapNow reaps on an engine that has just been reached. Close gives it reapGrace.
func (s *Sandbox) reapNow() {
	ctx, cancel := context.WithTimeout(context.Background(), reapTimeout)
	defer cancel()
	closing := context.AfterFunc(s.life, func() { time.AfterFunc(reapGrace, cancel) })
	defer closing()
	if err := s.reap(ctx); err != nil {
		s.log.Warn("containers of dead bridges could not be looked for", "err", err)
	}
}

// reapAgain reaps, if the engine was there when it was last used. An engine that is at rest or away
// is left alone, and not reported: the next run hears of it.
func (s *Sandbox) reapAgain() {
	if s.found() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, reapTimeout)
	defer cancel()
	if err := s.reap(ctx); err != nil {
		s.log.Debug("containers of dead bridges could not be looked for", "err", err)
	}
}
