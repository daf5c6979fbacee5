package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// guest is one container and the program of package entrypoint in it. It serves one run at
// most, or those of one Kept.
type guest struct {
	sandbox *Sandbox
	machine machine
	class   class
	ahead   []string // modules that it was asked to import before it was ready
	stdin   *entrypoint.Writer
	frames  *entrypoint.Reader // for one goroutine at a time
	hello   entrypoint.FromGuest
	stderr  *runtime.Tail

	begun time.Time // when its container was asked for
	up    time.Time // when it was ready; zero until then

	life context.Context // ends when the container is to be killed
	kill context.CancelCauseFunc

	stdinW  *io.PipeWriter
	stdoutR *io.PipeReader

	// closed when nothing comes from the container any more: it has ended, or its engine went away
	quiet chan struct{}
	gone  chan struct{} // closed when the container is gone
	exit  runtime.Exit  // how it ended, once it is gone
	err   error         // the driver's

	unasked atomic.Bool // how its container ends is of no interest

	pinging chan struct{} // full while a ping waits for its answer
	pings   int64
	taken   bool      // the frames are a run's from now on
	ordered time.Time // when it was sent its run's execute, behind a ping; zero: it hasn't been
}

// startGuest asks for a container without waiting for anything. Before it is ready it imports
// modules ahead. The caller has room for it from admission, and must call discard, which gives that
// back.
func (s *Sandbox) startGuest(m machine, ahead []string) *guest {
	g := &guest{
		sandbox: s, machine: m, class: m.class(), ahead: ahead, begun: time.Now(),
		stderr: &runtime.Tail{Limit: stderrTail},
		quiet:  make(chan struct{}), gone: make(chan struct{}), pinging: make(chan struct{}, 1),
	}
	// No call's context: a guest may outlive the call that had it started, or have no call at all.
	g.life, g.kill = context.WithCancelCause(context.Background())
	var stdinR *io.PipeReader
	var stdoutW *io.PipeWriter
	stdinR, g.stdinW = io.Pipe()
	g.stdoutR, stdoutW = io.Pipe()
	g.stdin = entrypoint.NewWriter(g.stdinW, entrypoint.MaxFrame)
	g.frames = entrypoint.NewReader(g.stdoutR, entrypoint.MaxFrame)
	ended := sync.OnceFunc(func() {
		stdoutW.Close()
		stdinR.CloseWithError(io.ErrClosedPipe) // ends writes to the guest
		close(g.quiet)
	})
	go func() {
		defer close(g.gone)
		std := runtime.Stdio{Stdin: stdinR, Stdout: stdoutW, Stderr: g.stderr, Ended: ended,
			ExitUnneeded: g.unasked.Load}
		spec := s.spec(m.image().ID)
		spec.Command, spec.Limits = s.command(m, ahead), s.limits(m.env)
		spec.Answers = true
		if m.age > 0 {
			spec.MaxAge = m.age + s.cfg.StartTimeout + ageSlack
		}
		g.exit, g.err = s.driver.Run(g.life, spec, std)
		// A driver whose context has ended says so, and nothing of its engine.
		if g.err != nil && !m.lacks(g.err) &&
			(g.life.Err() == nil || errors.As(g.err, new(*runtime.UnavailableError))) {
			s.forget(m) // the next run looks at the engine again
		}
		ended()
	}()
	source := s.sourceFor(m.base.ID)
	go func() { _, _ = g.stdinW.Write(source) }() // ends when the guest has read it, or is gone
	return g
}

var errStartTimeout = errors.New("it was not ready in time")

// await waits until the guest is ready, has ended or has taken too long, which kills it. It returns
// how many frames made no sense.
func (g *guest) await(limit time.Duration) (bad int) {
	starting := time.AfterFunc(limit, func() { g.cut(errStartTimeout) })
	defer starting.Stop()
	for {
		f, err := g.frames.Read()
		switch {
		case errors.As(err, new(*entrypoint.FrameError)):
			bad++
		case err != nil:
			return bad
		case f.Type != entrypoint.TypeReady:
			bad++
		case !starting.Stop(): // too late already
			return bad
		case f.Protocol != entrypoint.Protocol:
			g.kill(&UnfitError{
				Image: g.machine.image(),
				Err: fmt.Errorf("the guest speaks version %d of the protocol, and this bridge %d", f.Protocol,
					entrypoint.Protocol),
				Next: "use another image, one that replaces none of the guest's modules",
			})
			return bad
		default:
			if extra := unasked(f.Extra, g.machine.facts); len(extra) > 0 {
				g.kill(&extraError{extra})
				return bad
			}
			if !f.Seccomp && !strongProfile(g.machine.facts) {
				g.kill(&UnfitError{
					Image: g.machine.image(),
					Err: fmt.Errorf("the guest can't filter system calls in it (%s), and here the engine's own filter "+
						"is its default or none", f.Note),
					Next: "use an image whose Python has ctypes, on x86_64 or aarch64, or leave MCP_BRIDGE_SECCOMP at " +
						"strict",
				})
				return bad
			}
			g.hello, g.up = f, time.Now()
			return bad
		}
	}
}

// check reports whether a warm guest answers a ping within pongWait and before ctx ends. One that
// doesn't is killed. After a check nothing that the guest has said is unread.
func (g *guest) check(ctx context.Context) bool {
	g.pinging <- struct{}{}
	defer func() { <-g.pinging }()
	return g.taken || g.answers(ctx, nil)
}

// maxAtOnce is the longest execute that is sent together with the ping: what a pipe of the kernel
// takes at once, so that a guest which doesn't read blocks no write.
const maxAtOnce = 32 << 10

// handOff gives a warm guest to a run, and reports whether it answers. The run's execute is sent in
// one write with the ping, unless it is nil or long, which spares a warm call 0.3 ms or more of its
// p50. The guest answers the ping before it says anything of the code.
//
// A guest that doesn't answer may have begun the code all the same. It has had no effect: the calls
// and the output of the code are read only behind the answer, and the container, which has no
// network and no file of the host, is killed. So the run can be given to another guest.
func (g *guest) handOff(ctx context.Context, execute []byte) bool {
	select {
	case g.pinging <- struct{}{}:
		defer func() { <-g.pinging }()
	case <-ctx.Done(): // the last check isn't over, and may take until pongWait
		return false
	}
	g.taken = true
	if len(execute) == 0 || len(execute) > maxAtOnce {
		return g.answers(ctx, nil)
	}
	g.ordered = time.Now()
	return g.answers(ctx, execute)
}

// answers pings the guest, with lines behind the ping, and reports whether the answer is the next
// thing that it says.
func (g *guest) answers(ctx context.Context, behind []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, pongWait)
	defer cancel()
	heard := context.AfterFunc(ctx, func() { g.cut(errNoPong) })
	defer heard()
	g.pings++
	ping, err := g.stdin.Encode(entrypoint.Ping{Type: entrypoint.TypePing, N: g.pings})
	if err != nil || g.stdin.WriteLine(append(ping, behind...)) != nil {
		return false
	}
	f, err := g.frames.Read()
	if err != nil || f.Type != entrypoint.TypePong || f.N != g.pings || !heard() {
		g.kill(errNoPong)
		return false
	}
	return true
}

var errNoPong = errors.New("the guest does not answer")

// end lets the guest end, kills it if it doesn't within a grace time, and returns when its
// container is gone.
func (g *guest) end() {
	g.hangUp()
	linger := time.AfterFunc(exitGrace, func() { g.kill(errLinger) })
	<-g.gone
	linger.Stop()
	g.kill(errOver)
}

// cut kills the guest and ends all reads and writes of its frames, since an engine may take long to
// kill.
func (g *guest) cut(cause error) {
	g.kill(cause)
	g.hangUp()
}

// hangUp ends the guest's stdin, and the reading of what it says.
func (g *guest) hangUp() {
	g.stdoutR.CloseWithError(io.ErrClosedPipe)
	g.stdinW.Close()
}

// discard ends a guest in the background; Close waits for it. It is called once for each guest, or
// part is.
func (g *guest) discard() {
	g.unasked.Store(true) // before its streams end, which the driver would ask about
	g.hangUp()
	g.discardAfter(0)
}

// partDelay is how long a guest is left alone that has said how its run ended, as PARTING in the
// guest's loop.py allows. What an engine does as a container ends holds up the answer otherwise: a
// warm call's p50 was half a millisecond more, its p95 one and a half.
const partDelay = 5 * time.Millisecond

// part discards a guest whose run has ended, once the answer can have been written.
func (g *guest) part() {
	g.unasked.Store(true)
	g.discardAfter(partDelay)
}

func (g *guest) discardAfter(d time.Duration) {
	s := g.sandbox
	s.runs.Go(func() {
		wait, over := context.WithTimeout(s.life, d)
		<-wait.Done()
		over()
		g.end()
		if g.err != nil {
			s.log.Debug("a container's end", "err", g.err)
		}
		s.admission.containerGone()
		s.pool.nudge()
		s.compileAhead(g)
	})
}

// goneWithin waits for the container's end, and reports whether it came in time.
func (g *guest) goneWithin(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-g.gone:
		return true
	case <-t.C:
		return false
	}
}

// over reports whether the container has ended, or is being killed.
func (g *guest) over() bool {
	select {
	case <-g.quiet:
		return true
	default:
		return g.life.Err() != nil
	}
}
