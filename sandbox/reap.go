package sandbox

import (
	"context"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	reapTimeout = 30 * time.Second // bounds one look
	reapGrace   = 5 * time.Second  // what is left of that once the sandbox is closed
)

// reap removes the containers of dead bridges, each time the engine is reached, in the background:
// they may take their time to end, and no run needs them gone. Only Close waits for it, for
// reapGrace: a bridge that is used once does its share too. Whose owner is dead is decided by
// process, boot and start of the process, never by an age: the machine's clock may be set at any
// time.
func (s *Sandbox) reap() {
	if s.enter() != nil {
		return
	}
	go func() {
		defer s.runs.Done()
		ctx, cancel := context.WithTimeout(context.Background(), reapTimeout)
		defer cancel()
		closing := context.AfterFunc(s.life, func() { time.AfterFunc(reapGrace, cancel) })
		defer closing()
		gone, err := runtime.Reap(ctx, s.driver, s.cfg.Owner)
		for _, o := range gone {
			s.log.Info("container of a dead bridge is removed", "container", o.Name, "owner_pid", o.Owner.PID,
				"was_running", o.Running)
		}
		if err != nil {
			s.log.Warn("containers of dead bridges could not be looked for", "err", err)
		}
	}()
}
