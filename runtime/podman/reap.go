//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containers/podman/v5/pkg/bindings/containers"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Orphans implements runtime.Driver.
func (d *Driver) Orphans(ctx context.Context, owner runtime.Owner) ([]runtime.Orphan, error) {
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
		errs = append(errs, d.newRun(c, id).remove(ctx))
	}
	return errors.Join(errs...)
}
