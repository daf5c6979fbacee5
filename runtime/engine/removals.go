package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// maxRetry is the longest time between two attempts to remove what is owed; each waits twice as
// long as the one before.
const maxRetry = time.Minute

// removals are the containers that could not be removed. They are removed in the background, once
// the engine that has them does so.
type removals[C connection] struct {
	e         *Engine[C]
	connected chan struct{} // holds one: a connection was made since they were last tried

	mu   sync.Mutex
	owed map[string]string // by id or name, each with the Home of its engine
}

// add has a container removed.
func (r *removals[C]) add(id, home string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.owed) == 0 {
		select {
		case <-r.connected: // by a connection before this container was owed
		default:
		}
	}
	if r.e.life.Err() != nil || len(r.owed) == 0 && !r.e.Go(r.keep) { // the next bridge reaps it
		r.e.log.Warn("container not removed", "container", id)
		return
	}
	r.owed[id] = home
}

// hurry has the next attempt made at once: there is a new connection.
func (r *removals[C]) hurry() {
	select {
	case r.connected <- struct{}{}:
	default:
	}
}

// keep tries again and again, until nothing is owed or the engine is closed.
func (r *removals[C]) keep() {
	wait := r.e.Times.Retry
	for {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			wait = min(2*wait, maxRetry)
		case <-r.connected:
			wait = r.e.Times.Retry
		case <-r.e.life.Done():
		}
		timer.Stop()
		if r.e.life.Err() != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.e.log.Warn("containers that could not be removed", "containers", slices.Collect(maps.Keys(r.owed)))
			return
		}
		if r.try(r.e.life) {
			return
		}
	}
}

// try tries once to remove all that is owed, and reports whether nothing is any more.
func (r *removals[C]) try(ctx context.Context) (done bool) {
	c, err := r.e.Connect(ctx)
	if err != nil {
		return false
	}
	r.mu.Lock()
	owed := maps.Clone(r.owed)
	r.mu.Unlock()
	for id, home := range owed {
		if home != c.Home() {
			continue // that engine is still away
		}
		if err := removeWithin(ctx, r.e.Times.Cleanup, c, id); err != nil {
			if errors.As(r.e.Lost(c, err), new(*runtime.UnavailableError)) {
				return false
			}
			continue
		}
		r.mu.Lock()
		delete(r.owed, id)
		done = len(r.owed) == 0
		r.mu.Unlock()
		if done {
			return true
		}
	}
	return false
}

func removeWithin(ctx context.Context, most time.Duration, c Client, id string) error {
	ctx, cancel := context.WithTimeout(ctx, most)
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
		if ctr.Unlabelled && len(ctr.Names) == 1 {
			o, ok = runtime.OwnerNamed(ctr.Names[0], owner)
		}
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
		if err := removeWithin(ctx, e.Times.Cleanup, c, id); err != nil {
			errs = append(errs, fmt.Errorf("removing container %.23s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}
