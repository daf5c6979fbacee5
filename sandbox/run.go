package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Bounds of a run that nobody has a reason to tune.
const (
	pingEvery   = entrypoint.Silence / 4 // after so much silence the guest ends itself
	cancelGrace = time.Second            // from cancel to done, for what is still on its way: when that stops coming, it is killed after that
	cancelMax   = 5 * time.Second        // the same, while something comes
	exitGrace   = 2 * time.Second        // from done to the container's own end
	stderrTail  = 2 << 10                // bytes kept of what the guest itself says on stderr
)

// Why a run's context ended.
var (
	errStopped = errors.New("the run was stopped")
	errOver    = errors.New("the run is over")
	errLinger  = errors.New("the guest didn't end by itself")
)

// extraError says that the engine gives its containers more than was asked for.
type extraError struct{ extra []string }

func (e *extraError) Error() string {
	return "no code was run, because the engine's own settings put more into every container than was asked for: " + strings.Join(e.extra, ", ")
}

// Hint names the next step for a person.
func (e *extraError) Hint() string {
	return "take volumes, mounts, devices and tz out of the [containers] section of containers.conf; an empty ~/.config/containers/mounts.conf stands for the system's"
}

// unasked is what the guest found and nobody expects.
func unasked(extra []string, f runtime.Facts) []string {
	return slices.DeleteFunc(slices.Clone(extra), func(name string) bool { return slices.Contains(f.OwnDevices, name) })
}

// A StartError says that a container was started but its guest never answered.
type StartError struct {
	Image  string
	Exit   runtime.Exit
	Stderr string // the last of what it said
	Err    error
}

func (e *StartError) Error() string {
	why := fmt.Sprintf("it ended with code %d before it was ready", e.Exit.Code)
	switch {
	case e.Err != nil:
		why = e.Err.Error()
	case e.Exit.OOMKilled:
		why = "it ran out of memory before it was ready"
	}
	msg := fmt.Sprintf("the container of image %s did not start Python: %s", e.Image, why)
	if e.Stderr != "" {
		msg += "; it said: " + e.Stderr
	}
	return msg
}

func (e *StartError) Unwrap() error { return e.Err }

// Hint names the next step for a person.
func (e *StartError) Hint() string {
	return "the image must have python3 (3.10 or newer) on its PATH: check MCP_BRIDGE_IMAGE and MCP_BRIDGE_MEMORY, or run: mcp-bridge doctor"
}

// Run runs the code in a container that no other run has had or gets, and returns once the code has ended; the container is gone then, or
// on its way, and gone when Close returns. When ctx ends the code is killed at once, its
// container a moment later at most, and the Result's Status is StatusCancelled. How the code failed is told in the Result; an error means that the run
// could not take place: *runtime.UnavailableError, *runtime.ImageError, *StartError, ErrClosed, or a bad Request.
func (s *Sandbox) Run(ctx context.Context, r Request, h Host) (Result, error) {
	begin := time.Now()
	if r.Timeout <= 0 || r.Timeout > s.cfg.MaxTimeout {
		return Result{}, fmt.Errorf("sandbox: timeout %v is not within 0 and %v", r.Timeout, s.cfg.MaxTimeout)
	}
	if len(r.Code) > MaxCode {
		return Result{}, fmt.Errorf("the code is %d bytes long; at most %d can be run: pass data through a tool instead", len(r.Code), MaxCode)
	}
	if size := r.inputBytes(); size > MaxInputs {
		return Result{}, fmt.Errorf("the files are %d bytes long; at most %d can be copied", size, MaxInputs)
	}
	if r.ID == "" {
		r.ID = rand.Text()
	}
	if err := s.enter(); err != nil {
		return Result{}, err
	}
	defer s.runs.Done()

	res, found, err := s.attempt(ctx, r, h)
	if found && (errors.As(err, new(*runtime.ImageError)) || isGone(err)) {
		// The image was removed, or the engine ended, since it was found. That is forgotten by now, and no code has run: an error
		// comes only where the guest has not been given its order.
		res, _, err = s.attempt(ctx, r, h)
	}
	if err != nil {
		return Result{}, err
	}
	res.Took.Total = time.Since(begin)
	s.log.Debug("run", "run", r.ID, "status", res.Status, "start", res.Took.Start, "ran", res.Took.Run, "took", res.Took.Total)
	return res, nil
}

// isGone reports whether an engine ended that was there before.
func isGone(err error) bool {
	var e *runtime.UnavailableError
	return errors.As(err, &e) && e.Gone
}

// attempt runs the code in what is found to run it in, if it is found.
func (s *Sandbox) attempt(ctx context.Context, r Request, h Host) (res Result, found bool, err error) {
	m, err := s.prepared(ctx, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return notBegun(r.ID), false, nil
	case err != nil:
		return Result{}, false, err
	}
	res, err = newSession(s, r, h, m).run(ctx)
	return res, true, err
}

// notBegun is of a run that was given up before there was a guest for it.
func notBegun(id string) Result {
	return Result{ID: id, Status: StatusCancelled, ExitCode: -1, Message: "The run was cancelled before it began."}
}

// MaxCode is the most bytes of code that a run takes. It leaves room for the rest of the execute frame.
const MaxCode = entrypoint.MaxFrame / 4

// run has a guest run the code, and plays the host's part until it has said how the code ended. The container then goes away
// by itself, and Close waits for that; where the guest's word isn't enough, run waits too.
func (n *session) run(caller context.Context) (Result, error) {
	n.begin = time.Now()
	order, err := n.order()
	if err != nil {
		return Result{}, err
	}
	ahead := order // with the last ping
	if len(n.req.Files) > 0 {
		ahead = nil // the files come before it
	}
	g, err := n.sandbox.lend(caller, n.machine, ahead)
	if err != nil {
		return notBegun(n.req.ID), nil
	}
	n.room = g.room
	n.stdin, n.cancel, n.abandon = g.stdin, g.kill, g.cut
	// The code outlives its caller's context by a moment: what was printed is still on its way.
	ctx, over := context.WithCancelCause(context.WithoutCancel(caller))
	defer over(errOver)
	stopped := context.AfterFunc(caller, n.cancelled)
	defer stopped()

	waiting := !g.up.IsZero()
	if !waiting {
		n.badFrames += g.await(n.sandbox.cfg.StartTimeout)
	}
	if !g.up.IsZero() {
		n.greet(g.hello)
		if err := n.sendFiles(g); err != nil {
			n.stopClock()
			n.sandbox.discard(g)
			return Result{}, err
		}
		if n.req.Began != nil {
			n.req.Began(waiting)
		}
		n.start(ctx, g.ordered, order)
		n.readFrames(ctx, g.frames)
	}
	n.ended = time.Now()
	n.stopClock()
	var e ending
	if !n.told() {
		g.end()
		e = ending{context.Cause(g.life), g.exit, g.err}
	}
	n.sandbox.discard(g)
	over(errOver)
	n.wg.Wait()
	if !g.up.IsZero() {
		n.sandbox.seenReady(n.machine) // not before: what that may start would take from the code's time
	}
	defer n.files.release()
	return n.conclude(e, g.stderr.String())
}

// told says that all is known of how the code ended: it was stopped by us, or the guest has said what byWait goes by, so that how the
// container ends changes nothing.
func (n *session) told() bool {
	if n.done == nil || wait(n.done).Killed == "cancel" {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.stopped != notStopped
	}
	return !unexplained(wait(n.done))
}

// greet keeps what the guest said of itself.
func (n *session) greet(hello entrypoint.FromGuest) {
	n.unfiltered, n.note = !hello.Seccomp, n.short(hello.Note)
	if n.unfiltered || n.note != "" {
		n.sandbox.log.Warn("the lock-down is weaker than it should be", "run", n.req.ID, "filter", hello.Seccomp, "why", n.note)
	}
}

// readFrames handles what the guest sends until it says done or its stdout ends.
func (n *session) readFrames(ctx context.Context, frames *entrypoint.Reader) {
	for n.done == nil {
		f, err := frames.Read()
		n.heard.Store(time.Now().UnixNano())
		var bad *entrypoint.FrameError
		switch {
		case errors.As(err, &bad):
			n.badFrames++
			continue
		case err != nil:
			return
		}
		switch f.Type {
		case entrypoint.TypeOutput:
			n.output(f)
		case entrypoint.TypeToolCall:
			n.toolCall(ctx, f)
		case entrypoint.TypeToolCancel:
			n.toolCancel(f)
		case entrypoint.TypeArtifact:
			n.artifact(f)
		case entrypoint.TypeDone:
			if f.ID != n.req.ID {
				n.badFrames++
				continue
			}
			n.done = &f
		case entrypoint.TypeTaken:
			n.untaken.settle(f.Bytes)
		case entrypoint.TypeReady, entrypoint.TypeStarted, entrypoint.TypePong:
		default:
			n.badFrames++
		}
	}
}
