package main

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

// leftProcess is a process that is left of a dead bridge's servers.
type leftProcess struct {
	PID      int    `json:"pid"`
	Program  string `json:"program,omitempty"`
	OwnerPID int    `json:"ownerPid"`
}

// reapServers ends what dead bridges' servers have left running. The bridge's watchdog does that; this is for where it was
// killed too.
func reapServers(by runtime.Owner) ([]leftProcess, error) {
	orphaned := func(mark string) bool {
		o, ok := runtime.OwnerNamed(mark, by)
		return ok && o.Orphaned(by)
	}
	left, err := guard.EndLeft(orphaned, endGrace)
	if err != nil {
		err = fmt.Errorf("servers of a dead bridge: %w", err)
	}
	found := []leftProcess{}
	for _, l := range left {
		o, _ := runtime.OwnerNamed(l.Mark, by)
		found = append(found, leftProcess{l.PID, l.Program, o.PID})
	}
	return found, err
}

// How long a watchdog lives before it looks for what other bridges have left, and how often it then does. At its start there is
// better to do for the machine: the first run is on its way.
const (
	reapServersAfter = 10 * time.Second
	reapServersEvery = time.Minute
)

// keepReapingServers looks for dead bridges' servers until over is closed, and logs what it ends.
func keepReapingServers(over <-chan struct{}, log *slog.Logger) {
	self := runtime.Self()
	for next := time.After(reapServersAfter); ; next = time.After(reapServersEvery) {
		select {
		case <-next:
			left, err := reapServers(self)
			for _, l := range left {
				log.Info("ended a process that a dead bridge's server has left", "pid", l.PID, "program", l.Program, "bridge", l.OwnerPID)
			}
			if err != nil { // the next look tries again
				log.Warn(err.Error())
			}
		case <-over:
			return
		}
	}
}
