// Package detect chooses a container engine and says why each other one was passed over. It is
// itself a runtime.Driver, over the one chosen at first use; when that one goes away, the next call
// looks again. It knows no engine: its Config says which drivers there are to choose from, and
// in which order they are preferred.
//
// # How the choice is made
//
// All candidates are asked side by side what they are. An engine that is not the wall itself
// (rootful, and not in a virtual machine of its own) comes after every other one; whether it may be
// used at all is its driver's to refuse. Apart from that the order of the candidates counts. The
// choice is made as soon as no candidate that has not answered yet could be preferred to the best
// that has; at the latest after Config.Settle, if any that is the wall has answered well. If none
// has, those that still work on their answer, such as a driver that is starting an API service,
// have until Config.Patience: the first of them that is the wall is taken, and one that isn't when
// nothing else is left to wait for. An engine that is at rest (runtime.Starter) is taken only where
// no other one runs.
//
// # What is kept
//
// A driver that was chosen once stays open until Close, also when its engine goes away and another
// one is chosen: it may owe the removal of containers, which it pays once the engine is back. The
// next search asks the same driver again. One that was passed over is closed.
package detect

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A Candidate is one engine that may be there.
type Candidate struct {
	Name string // for people: "podman", "docker"
	// where it will be looked for, without credentials; empty if its driver looks for it by itself
	Endpoint string
	Open     func() runtime.Driver // makes its driver, which must touch nothing before its first use
}

// Config is what is to be chosen from, and how long that may take.
type Config struct {
	Candidates []Candidate // in order of preference; at least one
	// until the best of those that have answered is taken, if it is the wall; 0 means two seconds
	Settle   time.Duration
	Patience time.Duration // until nothing is waited for any more; 0 means ten seconds
	OS       string        // GOOS's names, for what to install; empty means this machine's
	Log      *slog.Logger  // nil means silence
}

const (
	defaultSettle   = 2 * time.Second
	defaultPatience = 10 * time.Second
)

// A Verdict is what became of one candidate.
type Verdict struct {
	Name     string
	Endpoint string        // Facts', or the candidate's where there are none
	Facts    runtime.Facts // the zero value where it gave none
	Err      error         // why it can't be used; nil for one that could be
	Chosen   bool
	Took     time.Duration // until it answered, or until it was no longer waited for
}

// Driver is a runtime.Driver, and a runtime.Starter and runtime.ImageImporter where the chosen
// engine's is. It is safe for concurrent use.
type Driver struct {
	cfg     Config
	log     *slog.Logger
	turn    chan struct{}   // full while a caller searches or starts an engine
	life    context.Context //nolint:containedctx // ends with Close, and with it searches and starts
	end     context.CancelFunc
	closing sync.WaitGroup // drivers that were passed over

	mu       sync.Mutex
	open     []*engine // by candidate: chosen once, or at rest; nil for none
	chosen   *engine   // nil until one was chosen, and after it was lost
	resting  *engine   // the preferred one of those at rest, when nothing else runs
	verdicts []Verdict
	searches int   // that came to an end
	err      error // of the last of them
	closed   bool
}

// engine is a candidate's driver.
type engine struct {
	runtime.Driver
	name  string
	index int  // of the candidate
	used  bool // it was chosen once
}

var (
	_ runtime.Driver        = (*Driver)(nil)
	_ runtime.Starter       = (*Driver)(nil)
	_ runtime.ImageImporter = (*Driver)(nil)
)

var errClosed = errors.New("the driver is closed")

// New touches nothing yet; the engine is chosen at first use.
func New(cfg Config) *Driver {
	cfg.Settle = cmp.Or(cfg.Settle, defaultSettle)
	cfg.Patience = cmp.Or(cfg.Patience, defaultPatience)
	cfg.OS = cmp.Or(cfg.OS, goruntime.GOOS)
	d := &Driver{
		cfg: cfg, log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), turn: make(chan struct{}, 1),
		open: make([]*engine, len(cfg.Candidates)),
	}
	d.life, d.end = context.WithCancel(context.Background())
	return d
}

// Name returns the chosen engine's; before the choice the only candidate's, or "engine" where there
// are several.
func (d *Driver) Name() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.chosen != nil:
		return d.chosen.name
	case len(d.cfg.Candidates) == 1:
		return d.cfg.Candidates[0].Name
	}
	return "engine"
}

// Verdicts returns what became of each candidate in the last search, in order; none before the
// first.
func (d *Driver) Verdicts() []Verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.verdicts)
}

// Survey chooses as any first use does, and then waits until every candidate has answered, up to
// Config.Patience, so that Verdicts knows all of them.
func (d *Driver) Survey(ctx context.Context) (runtime.Facts, error) {
	e, err := d.acquire(ctx, true)
	if err != nil {
		return runtime.Facts{}, err
	}
	return on(d, e, func(e runtime.Driver) (runtime.Facts, error) { return e.Facts(ctx) })
}

// Facts implements runtime.Driver; it is the call that chooses.
func (d *Driver) Facts(ctx context.Context) (runtime.Facts, error) {
	return use(ctx, d, func(e runtime.Driver) (runtime.Facts, error) { return e.Facts(ctx) })
}

// FindImage implements runtime.Driver.
func (d *Driver) FindImage(ctx context.Context, ref string) (runtime.Image, bool, error) {
	ok := false
	i, err := use(ctx, d, func(e runtime.Driver) (i runtime.Image, err error) {
		i, ok, err = e.FindImage(ctx, ref)
		return i, err
	})
	return i, ok, err
}

// PullImage implements runtime.Driver. It asks no registry for an image of a local name.
func (d *Driver) PullImage(ctx context.Context, ref string, p runtime.Progress) (runtime.Image, error) {
	if runtime.IsLocal(ref) {
		return runtime.Image{}, runtime.LocalError(ref)
	}
	return use(ctx, d, func(e runtime.Driver) (runtime.Image, error) { return e.PullImage(ctx, ref, p) })
}

// ImportImage implements runtime.ImageImporter, if the engine's driver does.
func (d *Driver) ImportImage(ctx context.Context, ref string, tar io.Reader) error {
	_, err := use(ctx, d, func(e runtime.Driver) (struct{}, error) {
		i, ok := e.(runtime.ImageImporter)
		if !ok {
			return struct{}{}, errors.New(e.Name() + " can't import an image")
		}
		return struct{}{}, i.ImportImage(ctx, ref, tar)
	})
	return err
}

// AddLayer implements runtime.Driver.
func (d *Driver) AddLayer(ctx context.Context, l runtime.Layer) (runtime.Image, error) {
	return use(ctx, d, func(e runtime.Driver) (runtime.Image, error) { return e.AddLayer(ctx, l) })
}

// ListImages implements runtime.Driver.
func (d *Driver) ListImages(ctx context.Context, label string) ([]runtime.ListedImage, error) {
	return use(ctx, d, func(e runtime.Driver) ([]runtime.ListedImage, error) { return e.ListImages(ctx, label) })
}

// RemoveImage implements runtime.Driver.
func (d *Driver) RemoveImage(ctx context.Context, id string) error {
	_, err := use(ctx, d, func(e runtime.Driver) (struct{}, error) { return struct{}{}, e.RemoveImage(ctx, id) })
	return err
}

// SaveImage implements runtime.Driver.
func (d *Driver) SaveImage(ctx context.Context, ref string, w io.Writer) error {
	_, err := use(ctx, d, func(e runtime.Driver) (struct{}, error) {
		return struct{}{}, e.SaveImage(ctx, ref, w)
	})
	return err
}

// Run implements runtime.Driver.
func (d *Driver) Run(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	return use(ctx, d, func(e runtime.Driver) (runtime.Exit, error) { return e.Run(ctx, s, std) })
}

// Orphans implements runtime.Driver. Housekeeping is no reason to look for an engine, or to wake
// one: while none is chosen, this is an *UnavailableError at once.
func (d *Driver) Orphans(ctx context.Context, owner runtime.Owner) ([]runtime.Orphan, error) {
	e, err := d.current()
	if err != nil {
		return nil, err
	}
	return on(d, e, func(e runtime.Driver) ([]runtime.Orphan, error) { return e.Orphans(ctx, owner) })
}

// Remove implements runtime.Driver; like Orphans it doesn't look for an engine.
func (d *Driver) Remove(ctx context.Context, ids ...string) error {
	e, err := d.current()
	if err != nil {
		return err
	}
	_, err = on(d, e, func(e runtime.Driver) (struct{}, error) { return struct{}{}, e.Remove(ctx, ids...) })
	return err
}

// Lost returns why no code can be run until an engine that was chosen once is back. Only a driver
// that keeps a lease of its engine knows that without asking; otherwise it is nil.
func (d *Driver) Lost() error {
	d.mu.Lock()
	open := slices.Clone(d.open)
	d.mu.Unlock()
	for _, e := range open {
		if e == nil {
			continue
		}
		if l, ok := e.Driver.(interface{ Lost() error }); ok && l.Lost() != nil {
			return l.Lost()
		}
	}
	return nil
}

// Reaches reports whether a container without our guest reaches anything. Only the driver of
// clusters can tell, whose containers have a network interface.
func (d *Driver) Reaches(ctx context.Context, image string) (reached bool, err error) {
	return use(ctx, d, func(e runtime.Driver) (bool, error) {
		r, ok := e.(interface {
			Reaches(ctx context.Context, image string) (bool, error)
		})
		if !ok {
			return false, errors.New(e.Name() + " gives containers no network to look at")
		}
		return r.Reaches(ctx, image)
	})
}

// Start implements runtime.Starter: it starts the engine that Facts has called dormant, and chooses
// it. Those who look for an engine meanwhile wait for that.
func (d *Driver) Start(ctx context.Context, p runtime.Progress) error {
	ctx, done, err := d.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	d.mu.Lock()
	e := cmp.Or(d.chosen, d.resting)
	d.mu.Unlock()
	if e == nil {
		return &runtime.UnavailableError{Err: errors.New("none is at rest that could be started")}
	}
	begin := time.Now()
	_, err = on(d, e, func(drv runtime.Driver) (f runtime.Facts, err error) {
		if s, ok := drv.(runtime.Starter); ok {
			err = s.Start(ctx, p)
		}
		if err == nil {
			f, err = drv.Facts(ctx)
		}
		if ctx.Err() == nil { // else it may still be starting, and the next call asks it again
			d.started(e, f, err, time.Since(begin))
		}
		return f, err
	})
	return err
}

// started records how the start of an engine went.
func (d *Driver) started(e *engine, f runtime.Facts, err error, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resting != e {
		return
	}
	v := &d.verdicts[e.index]
	v.Took, v.Err = took, err
	d.resting = nil
	if err == nil {
		v.Facts, v.Endpoint, v.Chosen = f, f.Endpoint, true
		d.chosen, e.used = e, true
	}
}

// Close ends searches under way and closes the drivers. Calls under way must have ended before.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.end()
	d.turn <- struct{}{} // once no search is under way
	defer func() { <-d.turn }()
	d.closing.Wait()
	var errs []error
	for i, e := range d.open {
		if e != nil {
			errs = append(errs, e.Close())
			d.open[i] = nil
		}
	}
	return errors.Join(errs...)
}

// use runs f on the engine in use, choosing one if there isn't one.
func use[T any](ctx context.Context, d *Driver, f func(runtime.Driver) (T, error)) (T, error) {
	e, err := d.acquire(ctx, false)
	if err != nil {
		var none T
		return none, err
	}
	return on(d, e, f)
}

// on runs f on an engine. One that turns out to be away is given up, so that the next use searches
// again; its driver is kept, since what the engine still has of ours is the driver's to remove.
func on[T any](d *Driver, e *engine, f func(runtime.Driver) (T, error)) (T, error) {
	v, err := f(e.Driver)
	var gone *runtime.UnavailableError
	if errors.As(err, &gone) && !gone.Dormant { // one at rest is still there, to be started
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.chosen == e {
			d.chosen = nil
			d.verdicts[e.index].Chosen, d.verdicts[e.index].Err = false, err
		}
	}
	return v, err
}

// current returns the engine in use; it never searches.
func (d *Driver) current() (*engine, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, &runtime.UnavailableError{Err: errClosed}
	case d.chosen == nil:
		return nil, &runtime.UnavailableError{Err: errors.New("none is in use")}
	}
	return d.chosen, nil
}
