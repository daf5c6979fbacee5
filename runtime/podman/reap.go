//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"

	"github.com/containers/podman/v5/pkg/bindings/containers"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Reap implements runtime.Driver.
func (d *Driver) Reap(ctx context.Context, owner runtime.Owner) (int, error) {
	c, err := d.connect(ctx)
	if err != nil {
		return 0, err
	}
	opts := new(containers.ListOptions).WithAll(true).WithFilters(map[string][]string{"label": {runtime.LabelInstance}})
	list, err := containers.List(c.with(ctx), opts)
	if err != nil {
		return 0, d.lost(c, fmt.Errorf("listing containers: %w", err))
	}
	var errs []error
	reaped := 0
	for _, ctr := range list {
		o, ok := runtime.OwnerOf(ctr.Labels)
		if !ok || !o.Orphaned(owner) {
			continue
		}
		if err := d.newRun(c, ctr.ID).remove(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		reaped++
	}
	return reaped, errors.Join(errs...)
}
