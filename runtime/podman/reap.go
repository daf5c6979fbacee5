//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/containers/podman/v5/pkg/bindings/containers"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Orphans implements runtime.Driver.
func (d *Driver) Orphans(ctx context.Context, owner runtime.Owner) ([]runtime.Orphan, error) {
	if d.machine.asleep() {
		return nil, nil // nothing runs there; and it isn't woken up for this
	}
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	opts := new(containers.ListOptions).WithAll(true).WithFilters(map[string][]string{"label": {runtime.LabelInstance}})
	list, err := containers.List(c.with(ctx), opts)
	if err != nil {
		return nil, d.lost(c, fmt.Errorf("listing containers: %w", err))
	}
	var found []runtime.Orphan
	for _, ctr := range list {
		o, ok := runtime.OwnerOf(ctr.Labels)
		if !ok || !o.Orphaned(owner) {
			continue
		}
		found = append(found, runtime.Orphan{ID: ctr.ID, Name: strings.Join(ctr.Names, ","), Owner: o, Created: ctr.Created, Running: ctr.State == "running"})
	}
	if !c.facts.Remote {
		found = append(found, forgotten(owner, found)...)
	}
	return found, nil
}

// Remove implements runtime.Driver.
func (d *Driver) Remove(ctx context.Context, ids ...string) error {
	c, err := d.connect(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		if ctx.Err() != nil { // each request would be tried three times all the same
			errs = append(errs, context.Cause(ctx))
			break
		}
		ctx, cancel := context.WithTimeout(ctx, d.cleanup)
		errs = append(errs, d.removal(c, id).remove(ctx))
		cancel()
	}
	if !c.facts.Remote {
		errs = append(errs, d.endMonitors(ctx, ids...))
	}
	return errors.Join(errs...)
}

// removal is the end of a container that another run, or another bridge, has made.
func (d *Driver) removal(c *connection, id string) *run { return &run{d: d, c: c, id: id} }

// remove returns once the container is gone, whoever removes it, or ctx has ended.
func (r *run) remove(ctx context.Context) error {
	opts := new(containers.RemoveOptions).WithForce(true).WithIgnore(true).WithVolumes(true).WithTimeout(0)
	for {
		reports, err := containers.Remove(r.c.with(ctx), r.id, opts)
		for _, report := range reports {
			err = errors.Join(err, report.Err)
		}
		switch {
		case err == nil, noSuch(err):
			return nil
		case unreachable(err), ctx.Err() != nil:
			return err
		}
		select { // it may be another's removal that is under way
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// debtTimeout is how long a container that could not be removed is tried again. It can't run for so long: MaxAge.
const debtTimeout = 20 * time.Minute

// owe has a container removed in the background once the engine answers again.
func (d *Driver) owe(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return // the next bridge's Reap
	}
	if len(d.owed) == 0 {
		d.owed = map[string]struct{}{}
		d.background.Go(d.pay)
	}
	d.owed[id] = struct{}{}
}

// pay removes what is owed, until nothing is, or it has taken too long.
func (d *Driver) pay() {
	ctx, cancel := context.WithTimeout(d.life, debtTimeout)
	defer cancel()
	tick := time.NewTicker(d.retry)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			d.mu.Lock()
			left := slices.Collect(maps.Keys(d.owed))
			d.owed = nil
			d.mu.Unlock()
			d.log.Warn("containers that could not be removed", "containers", left)
			return
		}
		d.mu.Lock()
		ids := slices.Collect(maps.Keys(d.owed))
		d.mu.Unlock()
		for _, id := range ids {
			if err := d.Remove(ctx, id); err != nil {
				break // the engine isn't back
			}
			d.mu.Lock()
			delete(d.owed, id)
			done := len(d.owed) == 0
			d.mu.Unlock()
			if done {
				return
			}
		}
	}
}
