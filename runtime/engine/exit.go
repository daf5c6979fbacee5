package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// waiting is a request for the exit code, made before the container is started. The engine removes
// the container by itself, and may have done so before it can be inspected, but it answers a wait
// that was there before.
type waiting struct {
	begun <-chan struct{} // the engine has taken note of it, or refused
	code  <-chan int      // gets one answer; -1 where there isn't one
	stop  func()
}

// waitGrace is how long the engine may take to answer a wait for a container that is gone. A wait
// is not cut off at once: podman's bindings would ask twice more.
const waitGrace = time.Second

// wait asks for the exit code.
func (r *run[C]) wait() waiting {
	ctx, cancel := context.WithCancel(r.e.life)
	begun, code := make(chan struct{}), make(chan int, 1)
	begin := sync.OnceFunc(func() { close(begun) })
	asked := r.e.Go(func() {
		n, err := r.c.Wait(ctx, r.id, begin)
		begin()
		if err != nil {
			n = -1
		}
		code <- n
	})
	if !asked {
		begin()
		code <- -1
	}
	return waiting{begun: begun, code: code, stop: func() { time.AfterFunc(waitGrace, cancel) }}
}

// inspectPause is the time from the first inspection of a container to the next, each time twice as
// long. An inspection costs the engine some 2 ms, and the first mostly finds the end.
const inspectPause = 5 * time.Millisecond

// exit returns how the container ended, after its streams have. An inspection is quicker than the
// wait and knows whether memory ran out.
func (r *run[C]) exit(ctx context.Context, code <-chan int) (runtime.Exit, error) {
	ctx, cancel := r.late(ctx, false)
	defer cancel()
	var waited *int
	for pause := inspectPause; ; pause *= 2 {
		exit, state, err := r.c.Inspect(ctx, r.id)
		if state == Ended || err != nil {
			return exit, err
		}
		again := time.After(pause)
		if state == Removed { // only the wait knows now
			if waited != nil {
				return runtime.Exit{Code: *waited, OOMKilled: r.c.OutOfMemory(ctx, r.id)}, nil
			}
			again = nil
		}
		select {
		case n := <-code:
			code, waited = nil, &n
		case <-again:
		case <-ctx.Done():
			const what = "container %.12s has closed its streams and did not end within %v"
			return runtime.Exit{}, fmt.Errorf(what, r.id, r.e.Times.Cleanup/2)
		}
	}
}

// leave makes sure that the container is gone, or will be. With doubt, its start was not seen to
// its end.
func (r *run[C]) leave(ctx context.Context, doubt bool) error {
	err := errNoAnswer
	if !r.silent.Load() {
		late, cancel := r.late(ctx, true)
		defer cancel()
		if err = remove(late, r.c, r.id); unreachable(err) {
			err = r.removeAgain(late)
		}
	}
	if err != nil {
		r.e.removals.add(r.id, r.c.Home())
		return fmt.Errorf("container %.23s could not be removed yet: %w", r.id, err)
	}
	if doubt && r.e.cfg.Unsettled != nil {
		r.e.cfg.Unsettled(context.WithoutCancel(ctx), r.c, r.id)
	}
	return nil
}

var errAnother = errors.New("another engine answers in place of the one that has it")

// removeAgain removes the container through a new connection.
func (r *run[C]) removeAgain(ctx context.Context) error {
	r.e.Drop(r.c)
	c, err := r.e.Connect(ctx)
	switch {
	case err != nil:
		return err
	case c.Home() != r.c.Home():
		return errAnother
	}
	return remove(ctx, c, r.id)
}

// ErrUnreachable means that nothing listens at the engine's endpoint any more.
var ErrUnreachable = errors.New("nothing listens there")

func unreachable(err error) bool {
	var op *net.OpError
	return errors.Is(err, ErrUnreachable) || errors.As(err, &op) && op.Op == "dial"
}

// removePause and maxRemovePause are the times between two requests to remove a container, for an
// engine that refuses or is removing it already.
const (
	removePause    = 5 * time.Millisecond
	maxRemovePause = time.Second
)

// remove blocks until the container is gone, whatever removes it, or ctx has ended.
func remove(ctx context.Context, c Client, id string) error {
	for wait := removePause; ; wait = min(2*wait, maxRemovePause) {
		err := c.Remove(ctx, id)
		switch {
		case err == nil, unreachable(err):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("it is not gone in time: %w", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("it is not gone in time: %w", err)
		}
	}
}
