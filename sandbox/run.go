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

// Bounds of a run that need no tuning.
const (
	pingEvery = entrypoint.Silence / 4 // after so much silence the guest ends itself
	// from cancel to done, for what is still on its way: when that stops coming, it is killed after
	// that
	cancelGrace = time.Second
	cancelMax   = 5 * time.Second // the same, while something comes
	exitGrace   = 2 * time.Second // from done to the container's own end
	stderrTail  = 2 << 10         // bytes kept of what the guest itself says on stderr
	pongWait    = time.Second     // for a warm guest's answer to a ping
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
	return "no code was run, because the engine's own settings put more into every container than was asked " +
		"for: " + strings.Join(e.extra, ", ")
}

// Hint names the next step for a person.
func (e *extraError) Hint() string {
	return "take volumes, mounts, devices and tz out of the [containers] section of containers.conf; an " +
		"empty ~/.config/containers/mounts.conf stands for the system's"
}

// unasked returns what the guest found that no engine's facts explain.
func unasked(extra []string, f runtime.Facts) []string {
	return slices.DeleteFunc(slices.Clone(extra), func(name string) bool {
		return slices.Contains(f.OwnDevices,
			name)
	})
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
	return "the image must have python3 (3.10 or newer) on its PATH: check MCP_BRIDGE_IMAGE and " +
		"MCP_BRIDGE_MEMORY, or run: mcp-bridge doctor"
}

// Run runs the code in a container of its own. It waits in the queue, prepares the engine where
// that is needed, and returns once the code has ended; the container is gone then, or on its way,
// and gone when Close returns. When ctx ends the code is killed at once, its container a moment
// later at most, and the Result's Status is StatusCancelled.
//
// How the code failed is told in the Result. An error means that the run could not take place:
// *QueueError, *runtime.UnavailableError, *runtime.ImageError (of the Request's Environment, where
// it has one), *UnfitError, *StartError, ErrClosed, what Request.Files returned, or a bad Request.
// The Result has only its Took then.
func (s *Sandbox) Run(ctx context.Context, r Request, h Host) (Result, error) {
	begin := time.Now()
	if err := s.check(&r); err != nil {
		return Result{}, err
	}
	if err := s.enter(); err != nil {
		r.Queued()
		return Result{}, err
	}
	defer s.runs.Done()

	n := newSession(s, r, h)
	res, err := n.admitted(ctx, func() (Result, error) {
		res, err := n.attempt(ctx)
		if n.outdated(err) {
			n.mu.Lock()
			n.over = false
			n.mu.Unlock()
			if err := n.rejoin(ctx); err != nil {
				return notBegun(r.ID), nil
			}
			return n.attempt(ctx)
		}
		return res, err
	})
	res.Took.Queued, res.Took.Prepared, res.Took.Total = n.queued, n.preparing, time.Since(begin)
	if err != nil {
		return Result{Took: res.Took}, err
	}
	s.log.Debug("run", "run", r.ID, "status", res.Status, "start", res.Took.Start, "ran", res.Took.Run, "took",
		res.Took.Total)
	return res, nil
}

// check refuses a request that can't be run, and completes one that can.
func (s *Sandbox) check(r *Request) error {
	if r.Timeout <= 0 || r.Timeout > s.cfg.MaxTimeout {
		return fmt.Errorf("sandbox: timeout %v is not within 0 and %v", r.Timeout, s.cfg.MaxTimeout)
	}
	if len(r.Code) > MaxCode {
		return fmt.Errorf("the code is %d bytes long; at most %d can be run: pass data through a tool instead",
			len(r.Code), MaxCode)
	}
	if r.ID == "" {
		r.ID = rand.Text()
	}
	if r.Queued == nil {
		r.Queued = func() {}
	}
	if r.Clock == nil {
		r.Clock = &Clock{}
	}
	if r.Progress == nil {
		r.Progress = func(string) {}
	}
	return nil
}

// outdated reports whether err came because the image was removed, or the engine ended, since it
// was found. No code has run then: an error comes only where the guest was not given its execute.
func (n *session) outdated(err error) bool {
	return n.prepared && !n.machine.lacks(err) && (errors.As(err, new(*runtime.ImageError)) || isGone(err))
}

// isGone reports whether an engine ended that was there before.
func isGone(err error) bool {
	var e *runtime.UnavailableError
	return errors.As(err, &e) && e.Gone
}

// MaxCode is the most bytes of code that a run takes. It leaves room for the rest of the execute
// frame.
const MaxCode = entrypoint.MaxFrame / 4

// admitted calls do once the run is admitted.
func (n *session) admitted(ctx context.Context, do func() (Result, error)) (Result, error) {
	s, began := n.sandbox, time.Now()
	if m := s.found(); m != nil {
		wanted := m.in(n.req.Environment)
		if n.kept != nil { // no guest that is warm is meant to become as old
			wanted.age = n.kept.req.MaxAge
		}
		n.ticket.class = wanted.class()
	}
	err := s.admission.enter(ctx, n.ticket, n.req.Queued, n.req.Progress)
	n.queued = time.Since(began)
	switch {
	case err != nil && ctx.Err() != nil:
		return notBegun(n.req.ID), nil
	case err != nil:
		return Result{}, err
	}
	defer s.admission.leave(n.ticket)
	return do()
}

// notBegun returns the Result of a run that was cancelled before it had a guest.
func notBegun(id string) Result {
	return Result{ID: id, Status: StatusCancelled, ExitCode: -1,
		Message: "The run was cancelled before it began."}
}

// attempt prepares, and runs the code in what is found then.
func (n *session) attempt(ctx context.Context) (Result, error) {
	err := n.prepare(ctx)
	if err != nil {
		n.sandbox.admission.giveBack(n.ticket)
		if ctx.Err() != nil {
			return notBegun(n.req.ID), nil
		}
		return Result{}, err
	}
	n.begin = time.Now()
	order, err := n.order()
	if err != nil {
		n.sandbox.admission.giveBack(n.ticket)
		return Result{}, err
	}
	g, err := n.acquire(ctx, order)
	if err != nil {
		return notBegun(n.req.ID), nil
	}
	return n.run(ctx, g, order)
}

// prepare finds the engine and the image, and opens the run's files.
func (n *session) prepare(ctx context.Context) (err error) {
	s := n.sandbox
	settled, began := s.admission.prepare(), time.Now()
	defer func() {
		settled()
		n.preparing += time.Since(began)
	}()
	n.req.Progress(Preparing)
	if n.machine, err = s.prepareFor(ctx, n.req.Environment, n.ticket.guest, n.req.Progress); err != nil {
		return err
	}
	first := !n.prepared
	n.prepared = true
	if n.req.Files == nil || !first {
		return nil
	}
	if n.inputs, err = n.req.Files(); err != nil {
		return err
	}
	if size := inputBytes(n.inputs); size > MaxInputs {
		return fmt.Errorf("the files are %d bytes long; at most %d can be copied", size, MaxInputs)
	}
	return nil
}

// acquire returns the warm guest that the run was admitted with, if that answers, or starts one.
// The caller discards it. A warm one has been sent order, the run's execute, where guest.ordered
// says so. The only error is ctx's.
func (n *session) acquire(ctx context.Context, order []byte) (*guest, error) {
	s := n.sandbox
	if len(n.inputs) > 0 {
		order = nil // the files come before it
	}
	defer s.pool.keepWarm(n.req.Environment)
	for {
		g := n.ticket.guest
		if g == nil {
			return s.startGuest(n.machine, nil), nil
		}
		if g.class == n.machine.class() && g.handOff(ctx, order) {
			s.pool.proved()
			return g, nil
		}
		if g.over() && ctx.Err() == nil {
			s.pool.died(g)
		}
		g.discard()
		if err := n.rejoin(ctx); err != nil {
			return nil, err
		}
	}
}

// rejoin waits until the run may have another container. The error is ctx's.
func (n *session) rejoin(ctx context.Context) error {
	began := time.Now()
	n.ticket.class = n.machine.class()
	err := n.sandbox.admission.rejoin(ctx, n.ticket)
	waited := time.Since(began)
	n.queued += waited
	n.begin = n.begin.Add(waited)
	return err
}

// run has a guest run the code, and plays the host's part until it has said how the code ended. The
// container then goes away by itself, and Close waits for that; where the guest's word isn't
// enough, run waits too.
func (n *session) run(caller context.Context, g *guest, order []byte) (Result, error) {
	n.stdin, n.calls.stdin, n.cancel, n.abandon = g.stdin, g.stdin, g.kill, g.cut
	// The code outlives its caller's context by a moment: what was printed is still on its way.
	ctx, over := context.WithCancelCause(context.WithoutCancel(caller))
	defer over(errOver)
	stopped := context.AfterFunc(caller, func() { n.stop(byCaller) })
	defer stopped()

	warm := !g.up.IsZero()
	if !warm {
		n.badFrames += g.await(n.sandbox.cfg.StartTimeout)
	}
	if !g.up.IsZero() {
		n.greet(g.hello)
		if err := n.sendFiles(g); err != nil {
			n.stopClock()
			g.discard()
			return Result{}, err
		}
		if n.req.Began != nil {
			n.req.Began(warm)
		}
		n.start(ctx, g.ordered, order)
		n.readFrames(ctx, g.frames)
	}
	n.ended = time.Now()
	n.stopClock()
	if n.done != nil && wait(n.done).Exited && n.req.Environment != nil {
		n.sandbox.pool.learn(n.req.Environment, n.done.Imported)
	}
	var e ending
	switch {
	case !n.told():
		g.end()
		e = ending{context.Cause(g.life), g.exit, g.err}
		g.discard()
	case n.done == nil:
		g.discard()
	default:
		g.part()
	}
	over(errOver)
	n.wg.Wait()
	defer n.files.release()
	return n.conclude(e, g.stderr.String())
}

// told reports whether all is known of how the code ended: it was stopped by us, or the guest has
// said what byWait goes by, so that the container's end changes nothing.
func (n *session) told() bool {
	if n.done == nil || wait(n.done).Killed == "cancel" {
		return n.isStopped()
	}
	return !unexplained(wait(n.done))
}

// greet notes what the guest said of itself.
func (n *session) greet(hello entrypoint.FromGuest) {
	n.unfiltered, n.note = !hello.Seccomp, n.short(hello.Note)
	if n.unfiltered || n.note != "" {
		n.sandbox.log.Warn("the lock-down is weaker than it should be", "run", n.req.ID, "filter", hello.Seccomp,
			"why", n.note)
	}
}

// readFrames handles what the guest sends until it says done or its stdout ends.
func (n *session) readFrames(ctx context.Context, frames *entrypoint.Reader) {
	for n.done == nil {
		f, err := frames.Read()
		n.heard.Store(time.Now().UnixNano())
		switch {
		case errors.As(err, new(*entrypoint.FrameError)):
			n.badFrames++
			continue
		case err != nil:
			return
		}
		switch f.Type {
		case entrypoint.TypeOutput:
			n.output(f)
		case entrypoint.TypeToolCall:
			if !n.isStopped() && !n.calls.begin(ctx, f) {
				n.badFrames++
			}
		case entrypoint.TypeToolCancel:
			if !n.calls.cancel(f.CallID) {
				n.badFrames++
			}
		case entrypoint.TypeData:
			if !n.data.add(f, n.req.ID) {
				n.badFrames++
			}
		case entrypoint.TypeArtifact:
			n.artifact(f)
		case entrypoint.TypeDone:
			if f.ID != n.req.ID {
				n.badFrames++
				continue
			}
			n.done = &f
		case entrypoint.TypeTaken:
			n.calls.untaken.settle(f.Bytes)
		case entrypoint.TypeReady, entrypoint.TypeStarted, entrypoint.TypePong:
		default:
			n.badFrames++
		}
	}
}
