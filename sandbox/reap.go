package sandbox

import (
	"context"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	reapEvery   = time.Minute
	reapTimeout = 30 * time.Second // of one look by the reaper
)

// reap removes the containers of dead bridges. Whose owner is dead is decided by process, boot and start of the process, never by
// an age: the machine's clock may be set at any time.
func (s *Sandbox) reap(ctx context.Context) error {
	gone, err := runtime.Reap(ctx, s.driver, s.cfg.Owner)
	for _, o := range gone {
		s.log.Info("container of a dead bridge is removed", "container", o.Name, "owner_pid", o.Owner.PID, "was_running", o.Running)
	}
	return err
}

// keepReaping starts the reaper, if it doesn't run yet; it ends with Close.
func (s *Sandbox) keepReaping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.reaping {
		return
	}
	s.reaping = true
	ctx := s.life
	s.runs.Go(func() {
		tick := time.NewTicker(reapEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.reapAgain(ctx)
			}
		}
	})
}

// reapAgain reaps, if the engine was there when it was last used. An engine that is at rest or away is left alone, and is no
// news: whoever runs code next hears of it.
func (s *Sandbox) reapAgain(ctx context.Context) {
	if s.found() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reapTimeout)
	defer cancel()
	if err := s.reap(ctx); err != nil {
		s.log.Debug("containers of dead bridges could not be looked for", "err", err)
	}
}
