//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/containers/podman/v5/libpod/define"
	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/containers"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Run implements runtime.Driver. The engine removes the container by itself once it has ended, so that a killed bridge
// leaves none; Run sees to it that this has happened before it returns. After ctx has ended Run takes a few
// times cleanup at most, even with an engine that doesn't answer any more.
func (d *Driver) Run(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if err := s.Validate(); err != nil {
		return runtime.Exit{}, err
	}
	c, err := d.connect(ctx)
	if err != nil {
		return runtime.Exit{}, err
	}
	r := d.newRun(c, "mcp-bridge-"+rand.Text())
	if err := r.create(ctx, s); err != nil {
		return runtime.Exit{}, d.createError(ctx, r, s, err)
	}
	exit, err := r.play(ctx, std)
	gone := r.remove(ctx)
	if unreachable(gone) {
		gone = d.removeAnew(ctx, r)
	}
	if err = errors.Join(err, gone); err != nil {
		return exit, d.lost(c, err)
	}
	return exit, nil
}

// create makes the container under a name of ours, by which it can be removed whatever becomes of the answer. A request that is
// given up half-way may still be carried out, so it isn't given up with ctx.
func (r *run) create(ctx context.Context, s runtime.Spec) error {
	life, end := r.outlive(ctx)
	defer end()
	g := generate(s, r.c.facts)
	g.Name = r.id
	created, err := containers.CreateWithSpec(r.c.with(life), g, nil)
	if err == nil {
		r.id = created.ID
	}
	return err
}

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

// unreachable says that nobody listens at the engine's endpoint any more.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// removeAnew removes a container whose engine went away, through a new connection. What ran in it has lost its standard input
// and ends by itself; but one that was not started yet does not.
func (d *Driver) removeAnew(ctx context.Context, r *run) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cleanup)
	defer cancel()
	d.drop(r.c)
	c, err := d.connect(ctx)
	if err != nil {
		return fmt.Errorf("container %.12s could not be removed: %w", r.id, err)
	}
	return d.newRun(c, r.id).remove(ctx)
}

// createError tells the ways apart in which a container can't be made, and sees to it that none was.
func (d *Driver) createError(ctx context.Context, r *run, s runtime.Spec, err error) error {
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), r.remove(ctx))
	}
	// Podman 4 answers 500 for an unknown image.
	if _, has, herr := d.FindImage(ctx, s.Image); herr == nil && !has {
		return &runtime.ImageError{Ref: s.Image, Err: errors.New(oneLine(err.Error())), Next: "get it with: mcp-bridge image pull"}
	}
	if gone := r.remove(ctx); unreachable(gone) {
		err = errors.Join(err, d.removeAnew(ctx, r))
	}
	return d.lost(r.c, fmt.Errorf("creating a container: %w", err))
}

// Attach asks by reflection whether its streams are nil, and panics where one is a struct, as io.Discard is.
type (
	source struct{ io.Reader }
	sink   struct{ io.Writer }
)

// run is one container.
type run struct {
	c  *connection
	id string // or its name, before it has one

	cleanup    time.Duration
	background *sync.WaitGroup // the driver's
}

func (d *Driver) newRun(c *connection, id string) *run {
	return &run{c: c, id: id, cleanup: d.cleanup, background: &d.background}
}

// play attaches, starts and waits. When ctx ends it kills the container; the attached streams end with it, or are cut where
// the engine doesn't answer.
func (r *run) play(ctx context.Context, std runtime.Stdio) (runtime.Exit, error) {
	if ctx.Err() != nil {
		return runtime.Exit{}, context.Cause(ctx)
	}
	life, end := r.outlive(ctx)
	defer end()
	line := r.c.apart(life)
	attached := make(chan bool, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- containers.Attach(line, r.id, &source{std.Stdin}, &sink{std.Stdout}, &sink{std.Stderr}, attached, nil)
	}()
	// Attach doesn't heed its context. What ends it is the end of the container, or of its connection.
	hangUp := context.AfterFunc(life, line.hangUp)
	defer hangUp()
	defer line.hangUp()
	select {
	case <-attached:
	case err := <-ended:
		return runtime.Exit{}, fmt.Errorf("attaching to the container: %w", err)
	}
	waited, stopWaiting := r.wait(ctx)
	defer stopWaiting()
	if err := containers.Start(r.c.with(life), r.id, nil); err != nil {
		line.hangUp() // nothing runs, so nothing else ends the streams
		<-ended
		return runtime.Exit{}, fmt.Errorf("starting the container: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { r.kill(ctx) })
	defer stop()
	lost := <-ended
	if life.Err() != nil {
		return runtime.Exit{}, context.Cause(life)
	}
	// The streams have ended: with the container, or because the engine went away or a writer failed. Then it is killed,
	// since nobody hears it any more; killing one that has ended does nothing.
	if lost != nil {
		r.kill(ctx)
	}
	exit, err := r.exit(ctx, waited)
	if err != nil && lost != nil {
		err = fmt.Errorf("%w; and its streams broke: %w", err, lost)
	}
	return exit, err
}

// kill is by id. A container that isn't running any more is what was wanted.
func (r *run) kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cleanup)
	defer cancel()
	_ = containers.Kill(r.c.with(ctx), r.id, new(containers.KillOptions).WithSignal("KILL"))
}

// wait asks for the exit code before the container is started: the engine removes the container by itself, and may have done
// so before it can be inspected, but answers a wait that was there before. The channel gets one answer; -1 where there is none.
//
// It answers by itself once the container is gone. One that is given up takes the bindings, which try three times, another
// 0.6 s to return: nobody waits for that but Close.
func (r *run) wait(ctx context.Context) (code <-chan int, stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	answer := make(chan int, 1)
	r.background.Go(func() {
		opts := new(containers.WaitOptions).WithConditions([]string{"exited"}).WithInterval(waitInterval)
		n, err := containers.Wait(r.c.with(ctx), r.id, opts)
		if err != nil {
			n = -1
		}
		answer <- int(n)
	})
	return answer, func() { time.AfterFunc(waitGrace, cancel) }
}

// exit says how the container ended, after its streams have. An inspection is quicker than the wait, whose interval is the
// engine's, and knows of kills for want of memory.
func (r *run) exit(ctx context.Context, waited <-chan int) (runtime.Exit, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cleanup)
	defer cancel()
	tick := time.NewTicker(inspectInterval)
	defer tick.Stop()
	for {
		exit, state, err := r.inspect(ctx)
		if state == ended || err != nil {
			return exit, err
		}
		select {
		case exit.Code = <-waited:
			if again, state, err := r.inspect(ctx); state == ended && err == nil {
				return again, nil
			}
			return exit, nil
		case <-tick.C:
			if state == removed { // only the wait knows now
				tick.Stop()
			}
		case <-ctx.Done():
			return runtime.Exit{}, fmt.Errorf("container %.12s has closed its streams and did not end within %v", r.id, r.cleanup)
		}
	}
}

// How often the engine looks for a container's end while we wait for it, and we ourselves once its streams have ended.
const (
	waitInterval    = "20ms"
	waitGrace       = time.Second // for the engine's answer to a wait for a container that is gone
	inspectInterval = 5 * time.Millisecond
)

// state is what an inspection found.
type state int

const (
	unknown state = iota // it runs, or is on its way to its end
	ended
	removed
)

// inspect says how the container ended, if it has and the engine knows it still.
func (r *run) inspect(ctx context.Context) (runtime.Exit, state, error) {
	data, err := containers.Inspect(r.c.with(ctx), r.id, nil)
	switch {
	case noSuch(err):
		return runtime.Exit{}, removed, nil
	case err != nil:
		return runtime.Exit{}, unknown, fmt.Errorf("asking how the container ended: %w", err)
	case data.State == nil || data.State.Running || data.State.FinishedAt.Before(data.State.StartedAt):
		return runtime.Exit{}, unknown, nil
	}
	return runtime.Exit{Code: int(data.State.ExitCode), OOMKilled: data.State.OOMKilled}, ended, nil
}

// remove returns once the container is gone, whoever removes it.
func (r *run) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cleanup)
	defer cancel()
	opts := new(containers.RemoveOptions).WithForce(true).WithIgnore(true).WithVolumes(true).WithTimeout(0)
	for {
		_, err := containers.Remove(r.c.with(ctx), r.id, opts)
		there, eerr := containers.Exists(r.c.with(ctx), r.id, nil)
		if eerr == nil && !there {
			return nil
		}
		if unreachable(eerr) {
			return fmt.Errorf("removing container %.12s: %w", r.id, eerr)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("container %.12s is not gone after %v: %w", r.id, r.cleanup, errors.Join(err, eerr))
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// noSuch says whether an API error means that the container is not there. Podman 4.3 answers 500 for one that vanishes while
// it is being looked at.
func noSuch(err error) bool {
	if err == nil {
		return false
	}
	code, cerr := bindings.CheckResponseCode(err)
	return cerr == nil && code == http.StatusNotFound || strings.Contains(err.Error(), define.ErrNoSuchCtr.Error())
}
