package sandboxes

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// A Call has a sandbox to itself until Leave. Its methods are called on one goroutine.
type Call struct {
	record *record
	left   bool

	Waited time.Duration // for the calls before it
	Fresh  bool          // it has made the guest
	Shared bool          // it is of those that name no sandbox
	Woken  bool          // it has made the guest from what was saved, or is the first run since
	Ended  string        // the id of the sandbox that has ended for this new one; empty for none
	Before string        // what became of the sandbox that this one replaces; empty for none
}

// ID returns the id of the sandbox.
func (c *Call) ID() string { return c.record.id }

// Running reports whether the sandbox's processes run on between calls.
func (c *Call) Running() bool {
	c.record.registry.mu.Lock()
	defer c.record.registry.mu.Unlock()
	return c.record.settings.Running
}

// Environment returns the environment of the sandbox. It is settled once there is a guest, or one
// was saved, which made reports.
func (c *Call) Environment() (env *sandbox.Environment, made bool) {
	c.record.registry.mu.Lock()
	defer c.record.registry.mu.Unlock()
	return c.record.env, c.record.guest != nil || c.record.claim != nil
}

// Guest returns the guest. The first call makes it, with an environment that later ones can't
// change.
func (c *Call) Guest(ctx context.Context, env *sandbox.Environment, queued func(), p runtime.Progress) (Guest,
	error) {
	b := c.record
	r := b.registry
	r.mu.Lock()
	g, over := b.guest, b.over
	settings, claim, calls := b.settings, b.claim, b.calls
	if !over && g == nil {
		r.work.Add(1) // Close, which ends all sandboxes first, waits for this one
	}
	r.mu.Unlock()
	switch {
	case over:
		return nil, c.gone()
	case g != nil:
		return g, nil
	}
	defer r.work.Done()
	err := r.fits(ctx, b.owner, queued, p)
	if err != nil {
		return nil, err
	}
	if claim != nil {
		if env, err = r.asleep.environment(ctx, claim.Saved.Environment, queued, p); err != nil {
			return nil, err
		}
	}
	g, err = r.cfg.Keep(ctx, sandbox.KeepRequest{
		Principal: settings.Principal, Environment: env, MaxAge: r.cfg.MaxAge + r.cfg.LongestCall,
		Variables: settings.Variables, Running: settings.Running, Calls: calls, Queued: queued, Progress: p,
	})
	if err != nil {
		return nil, err
	}
	if claim != nil {
		if err := restore(ctx, g, claim); err != nil {
			r.work.Go(func() { _ = g.Close() })
			return nil, err
		}
	}
	r.mu.Lock()
	lives, err := b.lives(g, env)
	r.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case !lives:
		return nil, c.gone()
	}
	c.Fresh, c.Woken, c.Ended = claim == nil, claim != nil, b.evicted
	return g, nil
}

// Run runs code in the sandbox, whose first call makes it with the request's Environment. The error
// is a *GoneError if the sandbox has ended before the code was run, and otherwise as that of
// sandbox.Run. The Result's Kept is there, whatever became of the sandbox.
func (c *Call) Run(ctx context.Context, req sandbox.Request, h sandbox.Host) (sandbox.Result, error) {
	began := time.Now()
	g, err := c.Guest(ctx, req.Environment, req.Queued, req.Progress)
	if err != nil {
		return sandbox.Result{}, err
	}
	made := time.Since(began)
	res, err := g.Run(ctx, req, h)
	res.Took.Queued += c.Waited
	res.Took.Start += made
	res.Took.Total += c.Waited + made
	if errors.As(err, new(*sandbox.EndedError)) {
		err = c.ended(err)
	}
	if err != nil {
		return res, err
	}
	b := c.record
	r := b.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case res.Kept == nil:
		res.Kept = &sandbox.KeptState{State: sandbox.StateKept, Calls: b.calls}
	case res.Kept.State == sandbox.StateLost:
		b.end(res.Kept.Reason, lost)
	}
	c.Woken, b.untold = b.untold, false
	b.calls = max(b.calls, res.Kept.Calls) // the run may have been cancelled before it began
	res.Kept.Calls = b.calls
	b.used = time.Now()
	if r.life.Err() != nil && !r.Hibernates() {
		b.end(bridgeEnded, removed)
	} else if at, reason, f := b.due(); !at.After(b.used) {
		b.end(reason, f) // as Leave would, when the result has been told
	}
	if b.over { // also where someone else has ended it
		reason := r.ended.of[b.id].reason
		res.Message = strings.Replace(res.Message, sandbox.Closed, reason, 1)
		res.Kept = &sandbox.KeptState{State: sandbox.StateLost, Reason: reason, Calls: b.calls}
	}
	return res, nil
}

// ended ends the sandbox for what its guest says, and returns the *GoneError that tells of it.
func (c *Call) ended(err error) error {
	var e *sandbox.EndedError
	if !errors.As(err, &e) {
		return err
	}
	r := c.record.registry
	r.mu.Lock()
	c.record.end(e.Reason, lost)
	r.mu.Unlock()
	return c.gone()
}

// gone returns the error that says why the sandbox has ended.
func (c *Call) gone() error {
	b := c.record
	r := b.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	return &GoneError{ID: b.id, Reason: r.ended.of[b.id].reason, Live: r.live.list(b.owner)}
}

// Do calls do with the guest. An error which says that the guest has ended becomes a *GoneError.
func (c *Call) Do(ctx context.Context, do func(Guest) error) error {
	env, _ := c.Environment()
	g, err := c.Guest(ctx, env, nil, nil)
	if err == nil {
		err = do(g)
	}
	return c.ended(err)
}

// Leave lets the next call begin. It may be called more than once.
func (c *Call) Leave() {
	r := c.record.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if !c.left {
		c.left = true
		c.record.next()
	}
}
