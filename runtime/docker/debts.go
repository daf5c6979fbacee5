package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// How long it takes from one attempt to remove what is owed to the next: twice as long each time.
const (
	retry    = 2 * time.Second
	maxRetry = time.Minute
)

var errAnother = errors.New("another engine answers in place of the one that has it")

// leave sees to it that the container is gone, or will be. What runs in one whose engine went away goes on without dockerd, which
// ends it when it is back, but where it is told not to (live-restore).
func (r *run) leave(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	err := r.remove(ctx)
	if unreachable(err) {
		err = r.removeAnew(ctx)
	}
	if err != nil {
		r.d.owe(r.id, r.c.facts.Endpoint)
		return fmt.Errorf("container %.23s could not be removed yet: %w", r.id, err)
	}
	return nil
}

// removeAnew is remove through a new connection.
func (r *run) removeAnew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.cleanup)
	defer cancel()
	r.d.drop(r.c)
	c, err := r.d.connect(ctx)
	switch {
	case err != nil:
		return err
	case c.facts.Endpoint != r.c.facts.Endpoint:
		return errAnother
	}
	return r.d.newRun(c, r.id).remove(ctx)
}

// owe has a container removed in the background once the engine at that endpoint does it.
func (d *Driver) owe(id, endpoint string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed { // the next bridge's Reap
		d.log.Warn("container not removed", "container", id)
		return
	}
	if len(d.owed) == 0 {
		d.owed = map[string]string{}
		select {
		case <-d.connected: // of a connection before this debt
		default:
		}
		d.background.Go(d.pay)
	}
	d.owed[id] = endpoint
}

// pay removes what is owed, until nothing is, or the driver is closed.
func (d *Driver) pay() {
	wait := d.retry
	for {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			wait = min(2*wait, maxRetry)
		case <-d.connected:
			wait = d.retry
		case <-d.open.Done():
		}
		timer.Stop()
		if d.open.Err() != nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.log.Warn("containers that could not be removed", "containers", slices.Collect(maps.Keys(d.owed)))
			return
		}
		if d.settle(d.open) {
			return
		}
	}
}

// settle tries once to remove all that is owed, and says whether nothing is any more.
func (d *Driver) settle(ctx context.Context) bool {
	c, err := d.connect(ctx)
	if err != nil {
		return false
	}
	d.mu.Lock()
	owed := maps.Clone(d.owed)
	d.mu.Unlock()
	for id, endpoint := range owed {
		if endpoint != c.facts.Endpoint {
			continue // that engine is still away
		}
		if err := d.newRun(c, id).remove(ctx); err != nil {
			var gone *runtime.UnavailableError
			if errors.As(d.lost(c, err), &gone) {
				return false
			}
			continue
		}
		d.mu.Lock()
		delete(d.owed, id)
		done := len(d.owed) == 0
		d.mu.Unlock()
		if done {
			return true
		}
	}
	return false
}
