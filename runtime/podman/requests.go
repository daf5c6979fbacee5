//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/containers/podman/v5/libpod/define"
	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/errorhandling"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

var _ engine.Client = (*connection)(nil)

// Run implements runtime.Driver. A container that the engine refuses, and that has a user namespace
// of its own, is tried once more without.
func (d *Driver) Run(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if err := s.Validate(); err != nil {
		return runtime.Exit{}, err
	}
	release, err := d.machine.awake(ctx)
	if err != nil {
		return runtime.Exit{}, err
	}
	defer release()
	c, err := d.Connect(ctx)
	if err != nil {
		return runtime.Exit{}, err
	}
	create := func(by *connection) func(context.Context, string) (string, error) {
		return func(ctx context.Context, name string) (string, error) { return by.Create(ctx, name, s) }
	}
	by := c
	if !c.users.hold(s.User) {
		by = c.without()
	}
	exit, started, err := d.Attempt(ctx, c, s, create(by), std)
	if err == nil || started || by.users.size == 0 || ctx.Err() != nil || !answered(err) {
		return exit, err
	}
	plain := c.without() // nothing of std has been used yet
	exit, started, aerr := d.Attempt(ctx, c, s, create(plain), std)
	if started {
		d.concede(c, plain, err)
	}
	return exit, aerr
}

// answered reports whether an error is the engine's own answer to a request, about a container that
// it could have made.
func answered(err error) bool {
	its := errors.As(err, new(*errorhandling.ErrorModel)) || errors.As(err, new(*engine.RefusedError))
	return its && !errors.As(err, new(*runtime.UnavailableError)) && !errors.As(err, new(*runtime.ImageError))
}

// Create implements engine.Client. Podman 4 answers 500 for an unknown image, so it is looked for.
func (c *connection) Create(ctx context.Context, name string, s runtime.Spec) (string, error) {
	g := generate(s, c, c.d.cfg.Hardening.OCIRuntime)
	g.Name = name
	created, err := containers.CreateWithSpec(c.with(ctx), g, nil)
	return created.ID, imageStore{c.api}.orMissing(ctx, s.Image, err)
}

// Attach implements engine.Client.
func (c *connection) Attach(ctx context.Context, id string) (engine.Stream, error) {
	return engine.Attach(ctx, c.dialer, "/v4.0.0/libpod/containers/"+url.PathEscape(id)+
		"/attach?stdin=true&stdout=true&stderr=true")
}

// waitInterval is how often the engine looks for a container's end while we wait for it. It looks
// as long as the container is there, a standby's whole life. At each look podman 4.3 reads its
// database, which at 20 ms was 2 % of a processor.
const waitInterval = "250ms"

// Wait implements engine.Client.
func (c *connection) Wait(ctx context.Context, id string, begun func()) (int, error) {
	begun() // it answers by itself once the container is gone
	opts := new(containers.WaitOptions).WithConditions([]string{"exited"}).WithInterval(waitInterval)
	n, err := containers.Wait(c.with(ctx), id, opts)
	return int(n), err
}

func (c *connection) Start(ctx context.Context, id string) error {
	return containers.Start(c.with(ctx), id, nil)
}

func (c *connection) Kill(ctx context.Context, id string) error {
	return containers.Kill(c.with(ctx), id, new(containers.KillOptions).WithSignal("KILL"))
}

// Inspect implements engine.Client.
func (c *connection) Inspect(ctx context.Context, id string) (runtime.Exit, engine.State, error) {
	data, err := containers.Inspect(c.with(ctx), id, nil)
	switch {
	case noSuch(err):
		return runtime.Exit{}, engine.Removed, nil
	case err != nil:
		return runtime.Exit{}, engine.Unknown, fmt.Errorf("asking how the container ended: %w", err)
	case data.State == nil || data.State.Running || data.State.FinishedAt.Before(data.State.StartedAt):
		return runtime.Exit{}, engine.Unknown, nil
	}
	return runtime.Exit{Code: int(data.State.ExitCode), OOMKilled: data.State.OOMKilled}, engine.Ended, nil
}

// OutOfMemory implements engine.Client. Podman remembers nothing of a container that is gone.
func (c *connection) OutOfMemory(context.Context, string) bool { return false }

// Remove implements engine.Client.
func (c *connection) Remove(ctx context.Context, id string) error {
	opts := new(containers.RemoveOptions).WithForce(true).WithIgnore(true).WithVolumes(true).WithTimeout(0)
	reports, err := containers.Remove(c.with(ctx), id, opts)
	for _, report := range reports {
		err = errors.Join(err, report.Err)
	}
	if noSuch(err) {
		return nil
	}
	return err
}

// List implements engine.Client. It also asks for external containers, which have no labels: those
// in podman's storage and not in its database, as a service leaves that is killed while it makes or
// removes one. Podman 5 filters them wrongly. It fails for all where one of another program is
// damaged; then the labelled ones are returned.
func (c *connection) List(ctx context.Context) ([]engine.Container, error) {
	labelled := map[string][]string{"label": {runtime.LabelInstance}}
	list, err := containers.List(c.with(ctx), new(containers.ListOptions).WithAll(true).WithFilters(labelled))
	if err != nil {
		return nil, err
	}
	var all []engine.Container
	for _, ctr := range list {
		all = append(all, engine.Container{
			ID: ctr.ID, Names: ctr.Names, Labels: ctr.Labels, Created: ctr.Created, Running: ctr.State == "running",
		})
	}
	list, _ = containers.List(c.with(ctx), new(containers.ListOptions).WithAll(true).WithExternal(true))
	for _, ctr := range list {
		if ctr.State == "storage" {
			all = append(all, engine.Container{ID: ctr.ID, Names: ctr.Names, Created: ctr.Created, Unlabelled: true})
		}
	}
	return all, nil
}

// status returns the HTTP status of an error of the bindings; 0 for another.
func status(err error) int {
	code, cerr := bindings.CheckResponseCode(err)
	if cerr != nil {
		return 0
	}
	return code
}

// noSuch reports whether an error means that the container is not there. Podman 4.3 answers 500 for
// one that vanishes while it is being looked at.
func noSuch(err error) bool {
	return err != nil &&
		(status(err) == http.StatusNotFound || strings.Contains(err.Error(), define.ErrNoSuchCtr.Error()))
}
