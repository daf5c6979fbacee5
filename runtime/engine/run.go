package engine

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Run implements runtime.Driver. The engine removes a container by itself once it has ended, so
// that a killed bridge leaves none; Run waits until that has happened. After ctx has ended, or the
// engine has fallen silent, Run takes little more than Times.Cleanup. A container that it had to
// leave is removed once the engine answers again.
func (e *Engine[C]) Run(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if err := s.Validate(); err != nil {
		return runtime.Exit{}, err
	}
	c, release, err := e.use(ctx)
	if err != nil {
		return runtime.Exit{}, err
	}
	defer release()
	create := func(ctx context.Context, name string) (string, error) { return c.Create(ctx, name, s) }
	exit, _, err := e.Attempt(ctx, c, s, create, std)
	return exit, err
}

// Attempt runs a container on that connection, which create makes. Started reports whether it was
// started, so that some of std may have been used.
func (e *Engine[C]) Attempt(ctx context.Context, c C, s runtime.Spec,
	create func(ctx context.Context, name string) (string, error), std runtime.Stdio,
) (exit runtime.Exit, started bool, err error) {
	r := &run[C]{e: e, c: c, id: s.Owner.NewName()}
	if err := r.create(ctx, create); err != nil {
		return runtime.Exit{}, false, r.createError(ctx, err)
	}
	exit, err = r.play(ctx, s, std)
	doubt := err != nil
	if err = errors.Join(err, r.leave(ctx, doubt)); err == nil {
		return exit, r.started, nil
	}
	if r.silent.Load() {
		return exit, r.started, e.gone(c, err)
	}
	return exit, r.started, e.Lost(c, err)
}

// run is one container, from its creation to its removal.
type run[C connection] struct {
	e       *Engine[C]
	c       C
	id      string // its name, until the engine has given it an id
	started bool
	silent  atomic.Bool // the engine was pinged and did not answer

	once  sync.Once
	until time.Time // when all that is done at the end must be over
}

// createPatience bounds a request for a container that no caller waits for any more.
const createPatience = 2 * time.Minute

// create makes the container under a name of ours, by which it can be removed whatever becomes of
// the answer. A request that is given up half-way may still be carried out. So it goes on when ctx
// ends, and what comes of it is removed.
func (r *run[C]) create(ctx context.Context, create func(context.Context, string) (string, error)) error {
	type answer struct {
		id  string
		err error
	}
	name := r.id
	answers, given := make(chan answer), make(chan struct{})
	asked := r.e.Go(func() {
		asking, cancel := context.WithTimeout(r.e.life, createPatience)
		defer cancel()
		id, err := create(asking, name)
		select {
		case answers <- answer{id, err}:
		case <-given:
			late := &run[C]{e: r.e, c: r.c, id: name}
			_ = late.leave(ctx, err != nil) // what can't be removed is owed
		}
	})
	if !asked {
		return ErrClosed
	}
	life, _, end := r.outlive(ctx)
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

// createError tells apart why a container was not made, and removes it in case it was.
func (r *run[C]) createError(ctx context.Context, err error) error {
	left := r.leave(ctx, false)
	switch {
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), left)
	case errors.As(err, new(*runtime.ImageError)):
		return err
	case r.silent.Load():
		return r.e.gone(r.c, errors.Join(err, left))
	case !r.c.There(): // which is all that left says
		return r.e.gone(r.c, err)
	}
	return r.e.Lost(r.c, errors.Join(fmt.Errorf("creating a container: %w", err), left))
}

var errNoAnswer = errors.New("the engine does not answer")

// outlive returns a context for what the engine is asked at the start of a run. It ends a while
// after ctx has; and, until heard is called, when the engine neither answers nor can be pinged. End
// must be called.
func (r *run[C]) outlive(ctx context.Context) (life context.Context, heard, end func()) {
	times := r.e.Times
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	silence := time.AfterFunc(times.Silence, func() {
		if !answers(r.c, times.Silence) && life.Err() == nil {
			r.silent.Store(true)
			cancel(errNoAnswer)
		}
	})
	var mu sync.Mutex
	var timer *time.Timer
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		timer = time.AfterFunc(times.Cleanup/2, func() {
			r.silent.Store(!answers(r.c, times.Silence/2))
			cancel(errNoAnswer)
		})
	})
	return life, func() { silence.Stop() }, func() {
		stop()
		silence.Stop()
		cancel(nil)
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
	}
}

// late returns a context for what is done whatever became of the run's own. All of it together gets
// Times.Cleanup, counted from the first call. The removal has the second half for itself.
func (r *run[C]) late(ctx context.Context, removal bool) (context.Context, context.CancelFunc) {
	r.once.Do(func() { r.until = time.Now().Add(r.e.Times.Cleanup) })
	until := r.until
	if !removal {
		until = until.Add(-r.e.Times.Cleanup / 2)
	}
	return context.WithDeadline(context.WithoutCancel(ctx), until)
}

// play attaches, starts and waits. When ctx ends, or the container is too old, it kills the
// container. The attached streams end with it, or are cut where the engine doesn't answer.
func (r *run[C]) play(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if ctx.Err() != nil {
		return runtime.Exit{}, context.Cause(ctx)
	}
	young, cancel := context.WithTimeout(ctx, s.MaxAge) // not every engine has a clock for this
	defer cancel()
	life, heard, end := r.outlive(young)
	defer end()
	stream, err := r.c.Attach(life, r.id)
	if err != nil {
		return runtime.Exit{}, cause(life, fmt.Errorf("attaching to the container: %w", unmapped(s.User, err)))
	}
	defer stream.Close()
	defer context.AfterFunc(life, func() { stream.Close() })()
	w := r.wait()
	defer w.stop()
	select {
	case <-w.begun:
	case <-life.Done():
		return runtime.Exit{}, context.Cause(life)
	}
	if err := r.c.Start(life, r.id); err != nil {
		// gVisor doesn't say what it could not start
		err = fmt.Errorf("starting the container, whose command is %s: %w", s.Command[0],
			unmapped(s.User, err))
		return runtime.Exit{}, cause(life, err)
	}
	heard()
	r.started = true
	defer context.AfterFunc(young, func() { r.kill(ctx) })()
	lost := carry(stream, std)
	std.End()
	if life.Err() != nil {
		return runtime.Exit{}, context.Cause(life)
	}
	// The streams have ended with the container, or because the engine went away or a writer failed.
	// Then the container is killed, since nothing reads it any more. One that has ended doesn't mind.
	switch {
	case !r.c.There():
		return runtime.Exit{}, errors.Join(errSocketGone, lost)
	case !std.NeedsExit(): // what may still run ends with its removal
		return runtime.Exit{Code: -1}, nil
	case lost != nil:
		r.kill(ctx)
	}
	exit, err := r.exit(ctx, w.code)
	if err != nil && lost != nil {
		err = fmt.Errorf("%w; and its streams broke: %w", err, lost)
	}
	return exit, err
}

var errSocketGone = errors.New("its socket is gone, and with it the container's streams")

// cause returns why life ended, or err where it has not.
func cause(life context.Context, err error) error {
	if life.Err() != nil {
		return context.Cause(life)
	}
	return err
}

// noSuchUser is what OCI runtimes say if the user namespace lacks the number of the user or group.
var noSuchUser = regexp.MustCompile(`(?i)set(groups|(res)?[ug]id)\b.*invalid argument`)

// unmapped adds to an error of that kind what it means.
func unmapped(user string, err error) error {
	if !noSuchUser.MatchString(err.Error()) {
		return err
	}
	return fmt.Errorf("%w; the engine's user namespace has no user or group of the number in %s: set "+
		"MCP_BRIDGE_CONTAINER_USER to smaller numbers, or leave it unset", err, user)
}

// kill ends a container that runs.
func (r *run[C]) kill(ctx context.Context) {
	ctx, cancel := r.late(ctx, false)
	defer cancel()
	_ = r.c.Kill(ctx, r.id)
}
