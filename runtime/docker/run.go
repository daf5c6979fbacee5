package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Run implements runtime.Driver. The engine removes the container by itself once it has ended, so that a killed bridge
// leaves none; Run sees to it that this has happened before it returns. After ctx has ended Run takes a few
// times cleanup at most, even with an engine that doesn't answer any more; a container that it had to leave is removed as soon as
// the engine does it.
func (d *Driver) Run(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if err := s.Validate(); err != nil {
		return runtime.Exit{}, err
	}
	c, err := d.connect(ctx)
	if err != nil {
		return runtime.Exit{}, err
	}
	t, err := d.template(ctx, c, s.Image)
	if err != nil {
		return runtime.Exit{}, err
	}
	r := d.newRun(c, s.Owner.NewName())
	if err := r.create(ctx, s, t); err != nil {
		return runtime.Exit{}, d.createError(ctx, r, s, err)
	}
	exit, err := r.play(ctx, s.MaxAge, std)
	if err = errors.Join(err, r.leave(ctx)); err != nil {
		return exit, d.lost(c, err)
	}
	return exit, nil
}

// run is one container.
type run struct {
	d  *Driver
	c  *connection
	id string // or its name, before it has one

	cleanup time.Duration
}

func (d *Driver) newRun(c *connection, id string) *run {
	return &run{d: d, c: c, id: id, cleanup: d.cleanup}
}

// create makes the container under a name of ours, by which it can be removed whatever becomes of the answer. A request that is
// given up half-way may still be carried out: so none is, and what comes of one that nobody waits for any more is removed.
func (r *run) create(ctx context.Context, s runtime.Spec, t template) error {
	config, host := r.c.generate(s, t, r.d.cfg.Hardening)
	name := r.id
	type answer struct {
		id  string
		err error
	}
	answers := make(chan answer) // whoever takes none has given up
	given := make(chan struct{})
	r.d.background.Go(func() {
		asking, cancel := context.WithTimeout(r.d.open, createPatience)
		defer cancel()
		made, err := r.c.cli.ContainerCreate(asking, config, host, nil, nil, name)
		r.d.warn(made.Warnings)
		select {
		case answers <- answer{made.ID, err}:
		case <-given:
			late := *r
			late.id = name
			_ = late.leave(ctx) // nobody hears it; what can't be removed is owed
		}
	})
	life, end := r.outlive(ctx)
	defer end()
	select {
	case a := <-answers:
		if a.err == nil {
			r.id = a.id
		}
		return a.err
	case <-life.Done():
		close(given)
		return context.Cause(life)
	}
}

// createPatience bounds the wait for a container that nobody waits for any more.
const createPatience = 2 * time.Minute

// outlive is a context that ends by itself, a while after ctx has. Its end function must be called.
func (r *run) outlive(ctx context.Context) (life context.Context, end func()) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var timer *time.Timer
	var mu sync.Mutex
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		timer = time.AfterFunc(r.cleanup, func() { cancel(errNoAnswer) })
	})
	return life, func() {
		stop()
		cancel(nil)
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
	}
}

var errNoAnswer = errors.New("the engine does not answer")

// createError tells the ways apart in which a container can't be made, and sees to it that none was.
func (d *Driver) createError(ctx context.Context, r *run, s runtime.Spec, err error) error {
	gone := r.leave(ctx)
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), gone)
	}
	if cerrdefs.IsNotFound(err) {
		r.c.forget(s.Image)
		return imageMissing(s.Image, err)
	}
	return d.lost(r.c, errors.Join(fmt.Errorf("creating a container: %w", err), gone))
}

// play attaches, starts and waits. When ctx ends, or the container is too old, it kills the container; the attached streams end
// with it, or are cut where the engine doesn't answer.
func (r *run) play(ctx context.Context, maxAge time.Duration, std runtime.Stdio) (runtime.Exit, error) {
	if ctx.Err() != nil {
		return runtime.Exit{}, context.Cause(ctx)
	}
	young, cancel := context.WithTimeout(ctx, maxAge) // docker has no clock for this
	defer cancel()
	life, end := r.outlive(young)
	defer end()
	l := new(line)
	hangUp := context.AfterFunc(life, l.hangUp)
	defer hangUp()
	defer l.hangUp() // which also ends a copy to standard input
	streams, err := r.c.cli.ContainerAttach(l.on(life), r.id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return runtime.Exit{}, cause(life, r.attachError(life, err))
	}
	w := r.wait(life) // after the attachment, before which podman takes a container for one that has ended
	defer w.stop()
	select {
	case <-w.begun:
	case <-life.Done():
		return runtime.Exit{}, context.Cause(life)
	}
	if err := r.c.cli.ContainerStart(life, r.id, container.StartOptions{}); err != nil {
		return runtime.Exit{}, cause(life, fmt.Errorf("starting the container: %w", err))
	}
	stop := context.AfterFunc(young, func() { r.kill(ctx) })
	defer stop()
	go feed(streams, std.Stdin) // until its reader or the line ends: a reader that blocks is the caller's
	_, lost := stdcopy.StdCopy(std.Stdout, std.Stderr, streams.Reader)
	std.End()
	if life.Err() != nil {
		return runtime.Exit{}, context.Cause(life)
	}
	// The streams have ended: with the container, or because the engine went away or a writer failed. Then it is killed,
	// since nobody hears it any more; killing one that has ended does nothing.
	if !std.NeedsExit() { // and what may still run ends with its removal
		return runtime.Exit{Code: -1}, nil
	}
	if lost != nil {
		r.kill(ctx)
	}
	exit, err := r.exit(ctx, w)
	if err != nil && lost != nil {
		err = fmt.Errorf("%w; and its streams broke: %w", err, lost)
	}
	return exit, err
}

// attachError finds out why a container can't be attached to: podman prepares its start then, and keeps the reason for itself.
func (r *run) attachError(life context.Context, err error) error {
	if r.c.podman {
		if serr := r.c.cli.ContainerStart(life, r.id, container.StartOptions{}); serr != nil {
			return fmt.Errorf("starting the container: %w", serr)
		}
	}
	return fmt.Errorf("attaching to the container: %w", err)
}

// cause is err, or why life ended.
func cause(life context.Context, err error) error {
	if life.Err() != nil {
		return context.Cause(life)
	}
	return err
}

// feed copies standard input and hands on its end.
func feed(to types.HijackedResponse, from io.Reader) {
	if _, err := io.Copy(struct{ io.Writer }{to.Conn}, from); err == nil {
		_ = to.CloseWrite() // a container that has ended doesn't mind
	}
}

// kill is by id. A container that isn't running any more is what was wanted.
func (r *run) kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cleanup)
	defer cancel()
	_ = r.c.cli.ContainerKill(ctx, r.id, "KILL")
}

// noSuch says whether an error means that the container is not there. Podman 4.3 answers 500 for one that vanishes while it is
// being looked at.
func noSuch(err error) bool {
	return cerrdefs.IsNotFound(err) || err != nil && strings.Contains(strings.ToLower(err.Error()), "no such container")
}
