//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containers/podman/v5/libpod/define"
	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/errorhandling"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Run implements runtime.Driver. The engine removes the container by itself once it has ended, so that a killed bridge
// leaves none; Run sees to it that this has happened before it returns. After ctx has ended, or the engine has fallen silent,
// Run takes ten seconds at most; a container that it had to leave is removed once the engine answers again.
func (d *Driver) Run(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if err := s.Validate(); err != nil {
		return runtime.Exit{}, err
	}
	release, err := d.awake(ctx)
	if err != nil {
		return runtime.Exit{}, err
	}
	defer release()
	c, err := d.connect(ctx)
	if err != nil {
		return runtime.Exit{}, err
	}
	if !c.users.hold(s.User) {
		c = c.without()
	}
	r := d.newRun(c, s.Owner)
	exit, err := r.run(ctx, s, std)
	if err == nil || r.started || c.users.size == 0 || ctx.Err() != nil || !answered(err) {
		return exit, err
	}
	again := d.newRun(c.without(), s.Owner) // nothing of std has been used yet
	exit, aerr := again.run(ctx, s, std)
	if again.started {
		d.concede(c, err)
	}
	return exit, aerr
}

// answered says whether an error is the engine's own answer to a request, about a container that it could have made.
func answered(err error) bool {
	var un *runtime.UnavailableError
	var image *runtime.ImageError
	var says *errorhandling.ErrorModel
	return errors.As(err, &says) && !errors.As(err, &un) && !errors.As(err, &image)
}

// run is one container.
type run struct {
	d       *Driver
	c       *connection
	id      string // or its name, before it has one
	started bool
	doubt   bool        // the engine was asked to start it, and what it did is not known for certain
	silent  atomic.Bool // the engine was asked whether it is there, and did not answer

	once  sync.Once
	until time.Time // when all that is done at the end must be over
}

func (d *Driver) newRun(c *connection, owner runtime.Owner) *run {
	return &run{d: d, c: c, id: owner.NewName()}
}

// run is the whole of it, from create to gone.
func (r *run) run(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if err := r.create(ctx, s); err != nil {
		return runtime.Exit{}, r.createError(ctx, s, err)
	}
	exit, err := r.play(ctx, s, std)
	r.doubt = err != nil
	if err = errors.Join(err, r.leave(ctx)); err != nil {
		if none := r.d.noRuntime(r.c, err); none != nil {
			return exit, none
		}
		if r.silent.Load() {
			return exit, r.d.gone(r.c, err)
		}
		return exit, r.d.lost(r.c, err)
	}
	return exit, nil
}

// create makes the container under a name of ours, by which it can be removed whatever becomes of the answer. A request that is
// given up half-way may still be carried out, so it isn't given up with ctx.
func (r *run) create(ctx context.Context, s runtime.Spec) error {
	life, _, end := r.outlive(ctx)
	defer end()
	g := generate(s, r.c, r.d.cfg.Hardening.OCIRuntime)
	g.Name = r.id
	created, err := containers.CreateWithSpec(r.c.with(life), g, nil)
	if err == nil {
		r.id = created.ID
	}
	return err
}

// outlive is a context for what the engine is asked at the start of a run. It ends by itself a while after ctx has, and, until
// heard is called, when the engine neither answers nor says that it is there. Its end function must be called.
func (r *run) outlive(ctx context.Context) (life context.Context, heard, end func()) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	ask := func() {
		if !r.c.answers(r.d.silence) && life.Err() == nil {
			r.silent.Store(true)
			cancel(errNoAnswer)
		}
	}
	silence := time.AfterFunc(r.d.silence, ask)
	var mu sync.Mutex
	var timer *time.Timer
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		timer = time.AfterFunc(r.d.cleanup/2, func() {
			r.silent.Store(!r.c.answers(r.d.silence / 2))
			cancel(errNoAnswer)
		})
	})
	heard = func() { silence.Stop() }
	return life, heard, func() {
		stop()
		heard()
		cancel(nil)
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
	}
}

var errNoAnswer = errors.New("the engine does not answer")

// late is a context for what is done whatever became of the run's own: all of it together gets cleanup, from the first call on.
// The removal has the second half for itself.
func (r *run) late(ctx context.Context, removal bool) (context.Context, context.CancelFunc) {
	r.once.Do(func() { r.until = time.Now().Add(r.d.cleanup) })
	until := r.until
	if !removal {
		until = until.Add(-r.d.cleanup / 2)
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// unreachable says that nobody listens at the engine's endpoint any more.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// leave sees to it that the container is gone, or will be. What ran in one whose engine went away has lost its standard input
// and ends by itself; but one that was not started yet does not.
func (r *run) leave(ctx context.Context) error {
	err := errNoAnswer
	if !r.silent.Load() {
		ctx, cancel := r.late(ctx, true)
		defer cancel()
		if err = r.remove(ctx); unreachable(err) {
			r.d.drop(r.c)
			var c *connection
			if c, err = r.d.connect(ctx); err == nil {
				err = r.d.removal(c, r.id).remove(ctx)
			}
		}
	}
	if err != nil {
		r.d.owe(r.id)
		return fmt.Errorf("container %.12s could not be removed yet: %w", r.id, err)
	}
	if r.doubt && !r.c.facts.Remote {
		r.d.settle(context.WithoutCancel(ctx), r.id)
	}
	return nil
}

// createError tells the ways apart in which a container can't be made, and sees to it that none was.
func (r *run) createError(ctx context.Context, s runtime.Spec, err error) error {
	switch {
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), r.leave(ctx))
	case r.silent.Load():
		return r.d.gone(r.c, errors.Join(errNoAnswer, r.leave(ctx)))
	case !r.c.there():
		_ = r.leave(ctx) // it says the same
		return r.d.gone(r.c, err)
	}
	// Podman 4 answers 500 for an unknown image.
	if _, has, herr := r.d.FindImage(ctx, s.Image); herr == nil && !has {
		return &runtime.ImageError{Ref: s.Image, Err: errors.New(runtime.OneLine(err.Error())), Next: "get it with: mcp-bridge image pull"}
	}
	if none := r.d.noRuntime(r.c, err); none != nil {
		return none
	}
	return r.d.lost(r.c, errors.Join(fmt.Errorf("creating a container: %w", err), r.leave(ctx)))
}

// play attaches, starts and waits. When ctx ends it kills the container; the attached streams end with it, or are cut where
// the engine doesn't answer.
func (r *run) play(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if ctx.Err() != nil {
		return runtime.Exit{}, context.Cause(ctx)
	}
	life, heard, end := r.outlive(ctx)
	defer end()
	line, err := r.attach(life)
	if err != nil {
		return runtime.Exit{}, fmt.Errorf("attaching to the container: %w", err)
	}
	defer line.hangUp()
	waited, stopWaiting := r.wait(ctx)
	defer stopWaiting()
	if err := containers.Start(r.c.with(life), r.id, nil); err != nil {
		return runtime.Exit{}, fmt.Errorf("starting the container, whose command is %s: %w", s.Command[0], err)
	}
	heard()
	r.started = true
	stop := context.AfterFunc(ctx, func() { r.kill(ctx) })
	defer stop()
	lost := line.carry(std)
	std.End()
	if life.Err() != nil {
		return runtime.Exit{}, context.Cause(life)
	}
	// The streams have ended: with the container, or because the engine went away or a writer failed. Then it is killed,
	// since nobody hears it any more; killing one that has ended does nothing.
	switch {
	case !r.c.there():
		return runtime.Exit{}, errors.Join(errors.New("its socket is gone, and with it the container's streams"), lost)
	case !std.NeedsExit(): // and what may still run ends with its removal
		return runtime.Exit{Code: -1}, nil
	case lost != nil:
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
	ctx, cancel := r.late(ctx, false)
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
	asked := r.d.spawn(func() {
		opts := new(containers.WaitOptions).WithConditions([]string{"exited"}).WithInterval(waitInterval)
		n, err := containers.Wait(r.c.with(ctx), r.id, opts)
		if err != nil {
			n = -1
		}
		answer <- int(n)
	})
	if !asked {
		answer <- -1
	}
	return answer, func() { time.AfterFunc(waitGrace, cancel) }
}

// exit says how the container ended, after its streams have. An inspection is quicker than the wait, whose interval is the
// engine's, and knows of kills for want of memory.
func (r *run) exit(ctx context.Context, waited <-chan int) (runtime.Exit, error) {
	ctx, cancel := r.late(ctx, false)
	defer cancel()
	for pause := inspectPause; ; pause *= 2 {
		exit, state, err := r.inspect(ctx)
		if state == ended || err != nil {
			return exit, err
		}
		var again <-chan time.Time
		if state != removed { // else only the wait knows now
			again = time.After(pause)
		}
		select {
		case exit.Code = <-waited:
			if again, state, err := r.inspect(ctx); state == ended && err == nil {
				return again, nil
			}
			return exit, nil
		case <-again:
		case <-ctx.Done():
			return runtime.Exit{}, fmt.Errorf("container %.12s has closed its streams and did not end within %v", r.id, r.d.cleanup/2)
		}
	}
}

// How often the engine looks for a container's end while we wait for it, and when we ask again ourselves once its streams have ended, each
// time after twice as long: an inspection costs podman's service 2 ms of a processor, and almost always the first finds the end. The engine
// looks as long as the container is there, a standby's whole life: at each look podman 4.3 reads its database, which at 20 ms was 2 % of a processor.
const (
	waitInterval = "250ms"
	waitGrace    = time.Second // for the engine's answer to a wait for a container that is gone
	inspectPause = 5 * time.Millisecond
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

// noSuch says whether an API error means that the container is not there. Podman 4.3 answers 500 for one that vanishes while
// it is being looked at.
func noSuch(err error) bool {
	if err == nil {
		return false
	}
	code, cerr := bindings.CheckResponseCode(err)
	return cerr == nil && code == http.StatusNotFound || strings.Contains(err.Error(), define.ErrNoSuchCtr.Error())
}
