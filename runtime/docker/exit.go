package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// waiting is a request for the exit code, made before the container is started: the engine removes the container by itself, and
// may have done so before it can be inspected, but answers a wait that was there before.
type waiting struct {
	begun <-chan struct{} // the engine has taken note of it, or refused
	code  <-chan int      // one answer; -1 where there is none
	stop  func()
}

func (r *run) wait(ctx context.Context) waiting {
	ctx, cancel := context.WithCancel(ctx)
	begun, code := make(chan struct{}), make(chan int, 1)
	if r.c.podman {
		r.d.background.Go(func() {
			n, err := r.c.podmanExit(ctx, r.id, sync.OnceFunc(func() { close(begun) }))
			if err != nil {
				n = -1
			}
			code <- n
		})
		return waiting{begun: begun, code: code, stop: cancel}
	}
	r.d.background.Go(func() {
		answers, failed := r.c.cli.ContainerWait(ctx, r.id, container.WaitConditionNextExit)
		close(begun)
		select { // one of the two comes, at the latest when ctx ends
		case a := <-answers:
			code <- int(a.StatusCode)
		case <-failed:
			code <- -1
		}
	})
	return waiting{begun: begun, code: code, stop: cancel}
}

// inspectInterval is how often we look for a container's end ourselves once its streams have ended.
const inspectInterval = 10 * time.Millisecond

// exit says how the container ended, after its streams have. An inspection knows of kills for want of memory; where the engine
// has removed the container already, its log of events does.
func (r *run) exit(ctx context.Context, w waiting) (runtime.Exit, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cleanup)
	defer cancel()
	tick := time.NewTicker(inspectInterval)
	defer tick.Stop()
	code := w.code
	var waited *int
	for {
		exit, state, err := r.inspect(ctx)
		switch {
		case state == ended || err != nil:
			return exit, err
		case state == removed && waited != nil:
			return runtime.Exit{Code: *waited, OOMKilled: r.oomKilled(ctx)}, nil
		}
		select {
		case n := <-code:
			code, waited = nil, &n
		case <-tick.C:
		case <-ctx.Done():
			return runtime.Exit{}, fmt.Errorf("container %.12s has closed its streams and did not end within %v", r.id, r.cleanup)
		}
	}
}

// state is what an inspection found.
type state int

const (
	unknown state = iota // it runs, or is on its way to its end
	ended
	removed
)

// inspect says how the container ended, if it has and the engine knows it still.
func (r *run) inspect(ctx context.Context) (runtime.Exit, state, error) {
	data, err := r.c.cli.ContainerInspect(ctx, r.id)
	switch {
	case noSuch(err):
		return runtime.Exit{}, removed, nil
	case err != nil:
		return runtime.Exit{}, unknown, fmt.Errorf("asking how the container ended: %w", err)
	case data.ContainerJSONBase == nil || data.State == nil || data.State.Running || !after(data.State.FinishedAt, data.State.StartedAt):
		return runtime.Exit{}, unknown, nil
	}
	return runtime.Exit{Code: data.State.ExitCode, OOMKilled: data.State.OOMKilled}, ended, nil
}

// after says whether a container that finished then has finished since it was started: one that hasn't has a time in the year 1.
func after(finished, started string) bool {
	f, err := time.Parse(time.RFC3339Nano, finished)
	s, serr := time.Parse(time.RFC3339Nano, started)
	return err == nil && serr == nil && f.Year() > 1 && !f.Before(s)
}

// eventsPatience bounds the look into the engine's events, which are in its memory.
const eventsPatience = time.Second

// oomKilled asks the engine's recent events about a container that is gone. The kill is told before the death, so the question
// ends with that.
func (r *run) oomKilled(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, eventsPatience)
	defer cancel()
	about := filters.NewArgs(filters.Arg("container", r.id), filters.Arg("event", "oom"), filters.Arg("event", "die"))
	messages, failed := r.c.cli.Events(ctx, events.ListOptions{Since: "1", Filters: about})
	for {
		select {
		case m := <-messages:
			return m.Action == events.ActionOOM
		case <-failed:
			return false
		}
	}
}

// remove returns once the container is gone, whoever removes it, or cleanup is over.
func (r *run) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.cleanup)
	defer cancel()
	for wait := inspectInterval; ; wait = min(2*wait, maxRemoveInterval) {
		err := r.c.cli.ContainerRemove(ctx, r.id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case err == nil || noSuch(err):
			return nil
		case unreachable(err):
			return err
		case cerrdefs.IsConflict(err) && r.removed(ctx): // the engine is at it
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("it is not gone after %v: %w", r.cleanup, err)
		}
	}
}

// maxRemoveInterval is the longest wait between two requests to remove a container, for an engine that keeps refusing.
const maxRemoveInterval = time.Second

// removed waits for a removal that is under way.
func (r *run) removed(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers, failed := r.c.cli.ContainerWait(ctx, r.id, container.WaitConditionRemoved)
	select {
	case a := <-answers:
		return a.Error == nil
	case err := <-failed:
		return noSuch(err)
	}
}

// Orphans implements runtime.Driver.
func (d *Driver) Orphans(ctx context.Context, owner runtime.Owner) ([]runtime.Orphan, error) {
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	opts := container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", runtime.LabelInstance))}
	list, err := c.cli.ContainerList(ctx, opts)
	if err != nil {
		return nil, d.lost(c, fmt.Errorf("listing containers: %w", err))
	}
	var found []runtime.Orphan
	for _, ctr := range list {
		o, ok := runtime.OwnerOf(ctr.Labels)
		if !ok || !o.Orphaned(owner) {
			continue
		}
		found = append(found, runtime.Orphan{ID: ctr.ID, Name: names(ctr.Names), Owner: o, Created: time.Unix(ctr.Created, 0), Running: ctr.State == container.StateRunning})
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
		if err := d.newRun(c, id).remove(ctx); err != nil {
			errs = append(errs, fmt.Errorf("removing container %.23s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// names are without the slash that docker puts before each.
func names(list []string) string {
	all := make([]string, len(list))
	for i, n := range list {
		all[i] = strings.TrimPrefix(n, "/")
	}
	return strings.Join(all, ",")
}
