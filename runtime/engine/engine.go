// Package engine holds what the drivers of container engines do alike. It connects once for all who
// ask, runs a container from its creation to its removal, removes later what could not be removed
// at once, and tells an engine that has gone from one that refuses. A driver brings a Client, which
// puts the requests into its engine's words, and a function that finds the engine.
//
// It decides no policy and knows no engine by name.
package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Times bound what an engine is given time for. Tests shorten them.
type Times struct {
	Cleanup time.Duration // all that is done for one run after its end: kill, ask how it ended, remove
	Silence time.Duration // without an answer at a run's start, after which the engine is pinged
	Retry   time.Duration // from one attempt to remove what is owed to the next, at first
}

// Config is what one driver adds to an Engine.
type Config[C Client] struct {
	Name  string // the engine's name as the user types it
	Times Times
	Log   *slog.Logger // nil means silence

	// Look finds the engine. Its context doesn't end with any caller's.
	Look func(ctx context.Context) (C, error)

	// Use, which may be nil, is called before a run and before an image is asked for, and release
	// after it.
	Use func(ctx context.Context) (release func(), err error)

	// Explain, which may be nil, words an error. Gone says that the engine doesn't answer any more.
	Explain func(c C, err error, gone bool) error

	// Unsettled, which may be nil, is told of a removed container whose start was not seen to its
	// end, so that the engine may have lost it.
	Unsettled func(ctx context.Context, c C, id string)
}

// connection is a Client that can be told from another.
type connection interface {
	comparable
	Client
}

// Engine is all of a runtime.Driver and runtime.ImageImporter that engines do alike. It is safe for
// concurrent use.
type Engine[C connection] struct {
	Times Times

	cfg        Config[C]
	log        *slog.Logger
	life       context.Context //nolint:containedctx // ends with Close; for what no caller waits for
	end        context.CancelFunc
	background sync.WaitGroup
	removals   removals[C]

	mu      sync.Mutex
	conn    C // the zero value for none
	dialing *attempt[C]
	closed  bool
}

// New returns an Engine that looks for nothing before its first use.
func New[C connection](cfg Config[C]) *Engine[C] {
	e := &Engine[C]{cfg: cfg, Times: cfg.Times, log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))}
	e.removals = removals[C]{e: e, connected: make(chan struct{}, 1), owed: map[string]string{}}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// Name returns the engine's name as the user types it.
func (e *Engine[C]) Name() string { return e.cfg.Name }

// Facts implements runtime.Driver. The answer is remembered while the engine stays reachable.
func (e *Engine[C]) Facts(ctx context.Context) (runtime.Facts, error) {
	c, err := e.Connect(ctx)
	if err != nil {
		return runtime.Facts{}, err
	}
	f := c.Facts()
	f.LSM, f.Lacks = slices.Clone(f.LSM), slices.Clone(f.Lacks)
	return f, nil
}

// attempt is one look for an engine, shared by all who want one. It outlives each of them, so that
// the next finds it done.
type attempt[C connection] struct {
	done chan struct{} // closed when c and err are set
	c    C
	err  error
}

// lookTimeout bounds an attempt: a few endpoints, of which not all can be silent.
const lookTimeout = 30 * time.Second

// Connect returns the connection. It makes one where there isn't one, or where its socket is gone.
func (e *Engine[C]) Connect(ctx context.Context) (C, error) {
	if c, ok := e.Current(); ok {
		if c.There() {
			return c, nil
		}
		e.Drop(c)
	}
	var none C
	a, err := e.attempt()
	if err != nil {
		return none, err
	}
	select {
	case <-a.done:
		return a.c, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// Current returns the connection if there is one.
func (e *Engine[C]) Current() (c C, ok bool) {
	var none C
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.conn, e.conn != none && !e.closed
}

// attempt joins the attempt under way, or starts one.
func (e *Engine[C]) attempt() (*attempt[C], error) {
	var none C
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, e.Unavailable("", ErrClosed, "")
	case e.conn != none: // since the caller looked
		a := &attempt[C]{done: make(chan struct{}), c: e.conn}
		close(a.done)
		return a, nil
	case e.dialing != nil:
		return e.dialing, nil
	}
	a := &attempt[C]{done: make(chan struct{})}
	e.dialing = a
	e.background.Go(func() {
		ctx, cancel := context.WithTimeout(e.life, lookTimeout)
		defer cancel()
		c, err := e.cfg.Look(ctx)
		e.mu.Lock()
		defer e.mu.Unlock()
		defer close(a.done)
		e.dialing = nil
		if a.err = err; err != nil {
			return
		}
		a.c, e.conn = c, c // also where the driver is closed meanwhile, which then closes it
		e.removals.hurry()
		f := c.Facts()
		e.log.Info("engine", "engine", f.Engine, "version", f.Version, "endpoint", f.Endpoint,
			"rootless", f.Rootless, "runtime", f.OCIRuntime, "seccomp", f.Seccomp)
	})
	return a, nil
}

// Swap replaces a connection by another to the same engine, of which the driver knows more.
func (e *Engine[C]) Swap(old, by C) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn == old {
		e.conn = by
	}
}

// Drop closes a connection and makes the next use connect again. While the engine is being closed
// the connection is left to Close.
func (e *Engine[C]) Drop(c C) {
	var none C
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed && e.conn == c {
		e.conn = none
		e.background.Go(c.Close)
	}
}

// Go runs f in the background, which Close waits for. It reports whether it did: a closed engine
// starts nothing.
func (e *Engine[C]) Go(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.background.Go(f)
	}
	return !e.closed
}

// Life returns a context that ends with the engine.
func (e *Engine[C]) Life() context.Context { return e.life }

// Settle blocks until nothing is done in the background any more.
func (e *Engine[C]) Settle() { e.background.Wait() }

// Shut ends all that is done in the background, and returns the connection, which is the caller's
// to close, or the zero value. Connect fails from then on.
func (e *Engine[C]) Shut() (c C) {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.end()
	e.Settle()
	e.mu.Lock()
	defer e.mu.Unlock()
	c, e.conn = e.conn, c
	return c
}

// Close implements runtime.Driver. Containers of runs under way must be gone before.
func (e *Engine[C]) Close() error {
	var none C
	if c := e.Shut(); c != none {
		c.Close()
	}
	return nil
}

// use connects for a run or an image. Release must be called unless there is an error.
func (e *Engine[C]) use(ctx context.Context) (c C, release func(), err error) {
	release = func() {}
	if e.cfg.Use != nil {
		if release, err = e.cfg.Use(ctx); err != nil {
			return c, nil, err
		}
	}
	if c, err = e.Connect(ctx); err != nil {
		release()
	}
	return c, release, err
}

// answers reports whether the engine answers within that time.
func answers(c Client, within time.Duration) bool {
	if !c.There() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return c.Ping(ctx) == nil
}

// Lost finds out whether an engine that has failed with err is still there. It returns err, or an
// *UnavailableError where the engine has gone; the next use then connects again.
func (e *Engine[C]) Lost(c C, err error) error {
	switch {
	case !answers(c, e.Times.Silence/2):
		return e.gone(c, err)
	case e.cfg.Explain != nil:
		return e.cfg.Explain(c, err, false)
	}
	return err
}

// gone returns the error for an engine that is known not to answer, as Lost does.
func (e *Engine[C]) gone(c C, err error) error {
	if e.cfg.Explain != nil {
		err = e.cfg.Explain(c, err, true)
	}
	e.Drop(c)
	const next = "run the call again; if that fails, run: mcp-bridge doctor"
	un := e.Unavailable(c.Facts().Endpoint, &goneError{err}, next)
	un.Gone = true
	return un
}

// Unavailable returns the error for an engine that can't be used. The endpoint loses its password.
func (e *Engine[C]) Unavailable(endpoint string, err error, next string) *runtime.UnavailableError {
	return unavailable(e.cfg.Name, endpoint, err, next)
}

func unavailable(engine, endpoint string, err error, next string) *runtime.UnavailableError {
	return &runtime.UnavailableError{Engine: engine, Endpoint: runtime.Redacted(endpoint), Err: err, Next: next}
}

// ErrClosed means that the driver was closed.
var ErrClosed = errors.New("the driver is closed")

// goneError is what an engine's death looked like, in one line.
type goneError struct{ err error }

func (e *goneError) Error() string {
	return "it went away: " + runtime.OneLine(strings.ReplaceAll(e.err.Error(), "\n", "; "))
}

func (e *goneError) Unwrap() error { return e.err }
