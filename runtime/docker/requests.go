package docker

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
)

// Create implements engine.Client. It asks for the image too, where that is not known by its id.
func (c *connection) Create(ctx context.Context, name string, s runtime.Spec) (id string, err error) {
	t, err := c.images.template(ctx, s.Image)
	if err != nil {
		return "", err
	}
	config, host := c.generate(s, t)
	made, err := c.cli.ContainerCreate(ctx, config, host, nil, nil, name)
	c.d.warn(made.Warnings)
	if cerrdefs.IsNotFound(err) {
		c.images.forget(s.Image)
		return "", engine.ImageMissing(s.Image, err)
	}
	return made.ID, err
}

// Attach implements engine.Client.
func (c *connection) Attach(ctx context.Context, id string) (engine.Stream, error) {
	path := "/v" + c.cli.ClientVersion() + "/containers/" + url.PathEscape(id) +
		"/attach?stream=1&stdin=1&stdout=1&stderr=1"
	return engine.Attach(ctx, c.dial, path)
}

// Wait implements engine.Client.
func (c *connection) Wait(ctx context.Context, id string, begun func()) (code int, err error) {
	answers, failed := c.cli.ContainerWait(ctx, id, container.WaitConditionNextExit)
	begun()
	select { // one of the two comes, at the latest when ctx ends
	case a := <-answers:
		return int(a.StatusCode), nil
	case err := <-failed:
		return -1, err
	}
}

func (c *connection) Start(ctx context.Context, id string) error {
	return c.cli.ContainerStart(ctx, id, container.StartOptions{})
}

func (c *connection) Kill(ctx context.Context, id string) error {
	return c.cli.ContainerKill(ctx, id, "KILL")
}

// Inspect implements engine.Client.
func (c *connection) Inspect(ctx context.Context, id string) (runtime.Exit, engine.State, error) {
	data, err := c.cli.ContainerInspect(ctx, id)
	switch {
	case noSuch(err):
		return runtime.Exit{}, engine.Removed, nil
	case err != nil:
		return runtime.Exit{}, engine.Unknown, fmt.Errorf("asking how the container ended: %w", err)
	case data.ContainerJSONBase == nil || data.State == nil || data.State.Running ||
		!after(data.State.FinishedAt, data.State.StartedAt):
		return runtime.Exit{}, engine.Unknown, nil
	}
	return runtime.Exit{Code: data.State.ExitCode, OOMKilled: data.State.OOMKilled}, engine.Ended, nil
}

// after reports whether a container that finished then has finished since it was started: one that
// hasn't has a time in the year 1.
func after(finished, started string) bool {
	f, err := time.Parse(time.RFC3339Nano, finished)
	s, serr := time.Parse(time.RFC3339Nano, started)
	return err == nil && serr == nil && f.Year() > 1 && !f.Before(s)
}

// eventsPatience bounds the look into the engine's events, which are in its memory.
const eventsPatience = time.Second

// OutOfMemory asks the engine's recent events about a container that is gone. The kill is told
// before the death, so the question ends with that.
func (c *connection) OutOfMemory(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, eventsPatience)
	defer cancel()
	about := filters.NewArgs(
		filters.Arg("container", id), filters.Arg("event", "oom"), filters.Arg("event", "die"))
	messages, failed := c.cli.Events(ctx, events.ListOptions{Since: "1", Filters: about})
	for {
		select {
		case m := <-messages:
			return m.Action == events.ActionOOM
		case <-failed:
			return false
		}
	}
}

// Remove implements engine.Client. A removal that is under way is waited for.
func (c *connection) Remove(ctx context.Context, id string) error {
	err := c.cli.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	switch {
	case err == nil, noSuch(err), cerrdefs.IsConflict(err) && c.removed(ctx, id):
		return nil
	case client.IsErrConnectionFailed(err):
		return fmt.Errorf("%w: %w", engine.ErrUnreachable, err)
	}
	return err
}

// removed waits for a removal that is under way.
func (c *connection) removed(ctx context.Context, id string) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers, failed := c.cli.ContainerWait(ctx, id, container.WaitConditionRemoved)
	select {
	case a := <-answers:
		return a.Error == nil
	case err := <-failed:
		return noSuch(err)
	}
}

// List implements engine.Client.
func (c *connection) List(ctx context.Context) ([]engine.Container, error) {
	about := filters.NewArgs(filters.Arg("label", runtime.LabelInstance))
	list, err := c.cli.ContainerList(ctx, container.ListOptions{All: true, Filters: about})
	var all []engine.Container
	for _, ctr := range list {
		var names []string
		for _, n := range ctr.Names {
			names = append(names, strings.TrimPrefix(n, "/"))
		}
		all = append(all, engine.Container{
			ID: ctr.ID, Names: names, Labels: ctr.Labels, Created: time.Unix(ctr.Created, 0),
			Running: ctr.State == container.StateRunning,
		})
	}
	return all, err
}

// noSuch reports whether an error means that the container is not there.
func noSuch(err error) bool {
	return cerrdefs.IsNotFound(err) ||
		err != nil && strings.Contains(strings.ToLower(err.Error()), "no such container")
}
