package detect

import (
	"context"
	"errors"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// engine is a candidate's driver. It is closed once it is retired and no longer in use.
type engine struct {
	runtime.Driver
	name  string
	index int // of the candidate

	users   int  // calls under way, those of searches too; guarded by Driver.mu
	used    bool // it was chosen once; guarded by Driver.mu
	retired bool // guarded by Driver.mu
}

// use runs f on the engine in use, choosing one if there is none.
func use[T any](ctx context.Context, d *Driver, f func(runtime.Driver) (T, error)) (T, error) {
	e, err := d.acquire(ctx, false)
	if err != nil {
		var none T
		return none, err
	}
	return checked(d, e, f)
}

// checked runs f on an engine that was acquired, releases it, and gives it up if it turned out to
// be away.
func checked[T any](d *Driver, e *engine, f func(runtime.Driver) (T, error)) (T, error) {
	defer d.release(e)
	v, err := f(e.Driver)
	var gone *runtime.UnavailableError
	if errors.As(err, &gone) && !gone.Dormant { // one at rest is still there, to be started
		d.lost(e, err)
	}
	return v, err
}

// acquire is the engine in use, until it is released. Where there is none, it waits for a search,
// with all others who do. With all set it waits until every candidate has answered to that search.
func (d *Driver) acquire(ctx context.Context, all bool) (*engine, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, &runtime.UnavailableError{Err: errClosed}
	}
	e := d.chosen
	if e == nil {
		s := d.going
		if s == nil {
			s = d.begin()
		}
		var err error
		if e, err = d.wait(ctx, s, all); err != nil {
			return nil, err
		}
	}
	d.hold(e)
	return e, nil
}

// hold counts one more use of e, which ends with release. It is called with mu held.
func (d *Driver) hold(e *engine) {
	e.users++
	d.work.Add(1)
}

// current is the engine in use, until it is released; it never searches.
func (d *Driver) current() (*engine, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, &runtime.UnavailableError{Err: errClosed}
	case d.chosen == nil:
		return nil, &runtime.UnavailableError{Err: errors.New("none is in use")}
	}
	d.hold(d.chosen)
	return d.chosen, nil
}

func (d *Driver) release(e *engine) {
	defer d.work.Done()
	d.mu.Lock()
	defer d.mu.Unlock()
	e.users--
	if e.retired && e.users == 0 {
		d.shut(e)
	}
}

// choose makes e the engine in use, and keeps its driver until Close. It is called with mu held.
func (d *Driver) choose(e *engine) {
	e.used = true
	d.chosen, d.kept[e.index] = e, e
}

// lost makes the next use search again. The driver is kept: what its engine still has of ours is
// the driver's to remove.
func (d *Driver) lost(e *engine, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.chosen != e {
		return
	}
	d.chosen = nil
	v := &d.verdicts[e.index]
	v.Chosen, v.Err = false, err
}

// retire closes e as soon as it is not in use. It is called with mu held; more than once does no
// harm.
func (d *Driver) retire(e *engine) {
	if e.retired {
		return
	}
	e.retired = true
	if e.users == 0 {
		d.shut(e)
	}
}

// shut closes an engine that is not used, in the background; Close waits for it. It is called once
// for each engine.
func (d *Driver) shut(e *engine) {
	d.work.Go(func() {
		if err := e.Close(); err != nil {
			d.log.Warn("an engine's driver was not closed", "engine", e.name, "err", err)
		}
	})
}
