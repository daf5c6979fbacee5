package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// maxRetry is the longest time between two attempts to remove what is owed; each waits twice as
// long as the one before.
const maxRetry = time.Minute

// owe has a container removed in the background, once the engine that has it does so.
func (e *Engine[C]) owe(id, home string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed { // the next bridge reaps it
		e.log.Warn("container not removed", "container", id)
		return
	}
	if len(e.owed) == 0 {
		e.owed = map[string]string{}
		select {
		case <-e.connected: // by a connection before this container was owed
		default:
		}
		e.background.Go(e.pay)
	}
	e.owed[id] = home
}

// pay removes what is owed, until nothing is or the engine is closed.
func (e *Engine[C]) pay() {
	wait := e.Times.Retry
	for {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			wait = min(2*wait, maxRetry)
		case <-e.connected:
			wait = e.Times.Retry
		case <-e.life.Done():
		}
		timer.Stop()
		if e.life.Err() != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.log.Warn("containers that could not be removed", "containers", slices.Collect(maps.Keys(e.owed)))
			return
		}
		if e.payOnce(e.life) {
			return
		}
	}
}

// payOnce tries once to remove all that is owed, and reports whether nothing is any more.
func (e *Engine[C]) payOnce(ctx context.Context) (done bool) {
	c, err := e.Connect(ctx)
	if err != nil {
		return false
	}
	e.mu.Lock()
	owed := maps.Clone(e.owed)
	e.mu.Unlock()
	for id, home := range owed {
		if home != c.Home() {
			continue // that engine is still away
		}
		if err := e.removeInTime(ctx, c, id); err != nil {
			var gone *runtime.UnavailableError
			if errors.As(e.Lost(c, err), &gone) {
				return false
			}
			continue
		}
		e.mu.Lock()
		delete(e.owed, id)
		done = len(e.owed) == 0
		e.mu.Unlock()
		if done {
			return true
		}
	}
	return false
}

func (e *Engine[C]) removeInTime(ctx context.Context, c C, id string) error {
	ctx, cancel := context.WithTimeout(ctx, e.Times.Cleanup)
	defer cancel()
	return remove(ctx, c, id)
}

// Orphans implements runtime.Driver.
func (e *Engine[C]) Orphans(ctx context.Context, owner runtime.Owner) ([]runtime.Orphan, error) {
	c, err := e.Connect(ctx)
	if err != nil {
		return nil, err
	}
	list, err := c.List(ctx)
	if err != nil {
		return nil, e.Lost(c, fmt.Errorf("listing containers: %w", err))
	}
	var found []runtime.Orphan
	for _, ctr := range list {
		o, ok := runtime.OwnerOf(ctr.Labels)
		if ok && (o.Orphaned(owner) || ctr.Forsaken && o.Instance != owner.Instance) {
			name := strings.Join(ctr.Names, ",")
			found = append(found, runtime.Orphan{
				ID: ctr.ID, Name: name, Owner: o, Created: ctr.Created, Running: ctr.Running,
			})
		}
	}
	return found, nil
}

// Remove implements runtime.Driver.
func (e *Engine[C]) Remove(ctx context.Context, ids ...string) error {
	c, err := e.Connect(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		if ctx.Err() != nil {
			return errors.Join(append(errs, context.Cause(ctx))...)
		}
		if err := e.removeInTime(ctx, c, id); err != nil {
			errs = append(errs, fmt.Errorf("removing container %.23s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}
