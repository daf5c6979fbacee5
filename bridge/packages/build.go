package packages

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
)

const (
	// buildTimeout bounds a build, and how long one call waits for versions to be chosen.
	buildTimeout = 15 * time.Minute

	// maxBuilds bounds how many environments are built, or wait for that, at a time.
	maxBuilds = 8
)

// errEnding ends builds.
var errEnding = errors.New("the bridge is ending")

// underway is a build, for which any number of calls wait. Chooser.mu guards its fields.
type underway struct {
	step    string
	ended   bool
	changed chan struct{} // closed when step or ended changes, and then replaced

	env environments.Environment // when it has ended
	err error
}

// build builds an environment, or waits for a build of it that is underway. The build goes on when
// ctx ends: a host may give up its call after a minute, and the next one finds all that was done.
func (c *Chooser) build(ctx context.Context, name string, slow func(),
	p runtime.Progress) (environments.Environment, error) {
	slow()
	u, err := c.begin(name)
	if err != nil {
		return environments.Environment{}, err
	}
	for told := ""; ; {
		c.mu.Lock()
		step, ended, changed := u.step, u.ended, u.changed
		c.mu.Unlock()
		if step != told {
			p(step)
			told = step
		}
		if ended {
			return u.env, u.err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return environments.Environment{}, context.Cause(ctx)
		}
	}
}

// begin returns the build of an environment, which it begins if none is underway. A build ends by
// itself, after buildTimeout, or with Close, which waits for it.
func (c *Chooser) begin(name string) (*underway, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.builds[name]; u != nil {
		return u, nil
	}
	switch {
	case c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case len(c.builds) >= maxBuilds:
		return nil, fmt.Errorf("%d other environments are being built; try again when one is done", maxBuilds)
	}
	u := &underway{changed: make(chan struct{})}
	c.builds[name] = u
	c.work.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, buildTimeout)
		defer cancel()
		env, err := c.buildNow(ctx, name, func(step string) { c.change(u, func() { u.step = step }) })
		c.change(u, func() {
			u.env, u.err, u.ended = env, err, true
			delete(c.builds, name)
		})
	})
	return u, nil
}

// change changes a build, and wakes those that wait for it.
func (c *Chooser) change(u *underway, how func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	how()
	close(u.changed)
	u.changed = make(chan struct{})
}

// buildNow builds an environment. A panic of it is an error: what is built was downloaded.
func (c *Chooser) buildNow(ctx context.Context, name string,
	p runtime.Progress) (env environments.Environment, err error) {
	defer func() {
		if why := recover(); why != nil {
			c.cfg.Log.Error("a build has panicked", "environment", name, "panic", why,
				"stack", string(debug.Stack()))
			err = fmt.Errorf("building the environment %s failed in a way that is an error of the bridge; its log "+
				"has the details: please report them", name)
		}
	}()
	if err := c.cfg.Ready(ctx, p); err != nil {
		return environments.Environment{}, err
	}
	env, err = c.cfg.Source.Build(ctx, name, func(s environments.Step) {
		p(fmt.Sprintf("building the environment %s (%d%%): %s", name, s.Percent, s.Text))
	})
	if err == nil {
		c.Forget() // it may be the one of code that asks for none
	}
	return env, err
}

// Close ends the builds that are underway, and waits for them. None begins any more.
func (c *Chooser) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.cancel(errEnding)
	c.mu.Unlock()
	c.work.Wait()
}
