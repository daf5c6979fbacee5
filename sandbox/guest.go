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

// guest is one container and the program of package entrypoint in it. It is lent to one run at most, and then destroyed.
type guest struct {
	machine machine
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

	quiet chan struct{} // closed when nothing comes from the container any more: it has ended, or its engine went away
	gone  chan struct{} // closed when the container is gone
	exit  runtime.Exit  // how it ended, once it is gone
	err   error         // the driver's

	unasked atomic.Bool // nobody needs to know how its container ends

	checking chan struct{} // full while somebody reads frames before the guest is lent
	pings    int64
	room     time.Duration // for which its run waited until there could be a container more
	lent     bool          // the frames are a run's from now on
	ordered  time.Time     // when it was sent its run's execute, behind a ping; zero: it hasn't been
}

// startGuest asks for a container, without waiting for anything. Whoever calls it sees to it that end is called.
func (s *Sandbox) startGuest(m machine) *guest {
	g := &guest{machine: m, begun: time.Now(), stderr: &runtime.Tail{Limit: stderrTail}, quiet: make(chan struct{}), gone: make(chan struct{}), checking: make(chan struct{}, 1)}
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
		stdinR.CloseWithError(io.ErrClosedPipe) // whoever still writes to the guest is let go
		close(g.quiet)
	})
	go func() {
		defer close(g.gone)
		std := runtime.Stdio{Stdin: stdinR, Stdout: stdoutW, Stderr: g.stderr, Ended: ended, ExitUnneeded: g.unasked.Load}
		g.exit, g.err = s.driver.Run(g.life, s.spec(m.image.ID), std)
		// A driver whose context has ended says so, and nothing of its engine.
		if g.err != nil && (g.life.Err() == nil || errors.As(g.err, new(*runtime.UnavailableError))) {
			s.forget(m) // whatever is wrong, the next run is to look
		}
		ended()
	}()
	// It ends when the guest has read it all, or is gone.
	source := s.sourceFor(m.image.ID)
	go func() { _, _ = g.stdinW.Write(source) }()
	return g
}

var errStartTimeout = errors.New("it was not ready in time")

// await waits until the guest is ready, has ended or has taken too long, which kills it. It counts the frames that make no sense.
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
		default:
			if extra := unasked(f.Extra, g.machine.facts); len(extra) > 0 {
				g.kill(&extraError{extra})
				return bad
			}
			if !f.Seccomp && !strongProfile(g.machine.facts) {
				g.kill(&UnfitError{
					Image: g.machine.image,
					Err:   fmt.Errorf("the guest can't filter system calls in it (%s), and here the engine's own filter is its default or none", f.Note),
					Next:  "use an image whose Python has ctypes, on x86_64 or aarch64, or leave MCP_BRIDGE_SECCOMP at strict",
				})
				return bad
			}
			g.hello, g.up = f, time.Now()
			return bad
		}
	}
}

// check says whether a guest that waits for its run still answers, within pongWait and before ctx ends. One that doesn't is killed.
// After a check nothing of the guest is on its way any more.
func (g *guest) check(ctx context.Context) bool {
	g.checking <- struct{}{}
	defer func() { <-g.checking }()
	return g.lent || g.answers(ctx, nil)
}

// maxAtOnce is how long an order may be to be sent behind the ping: as much as a pipe of the kernel's takes at once, so that a guest which
// doesn't read holds up nobody.
const maxAtOnce = 32 << 10

// order checks a guest for the last time and lends it. Its run's execute is sent in one go with the ping, unless it is nil or long: the guest
// answers before it says anything of what comes next, so the run is spared a round trip.
//
// A guest that doesn't answer may have begun the code all the same. Nobody has heard of that: its calls are answered, and what it prints
// is read, only behind the answer to the ping; the container has no network and no file of anybody else's, and is killed. So another
// guest can be given the same order, and to the run, its caller and the servers it is as if the first one had never been there.
func (g *guest) order(ctx context.Context, execute []byte) bool {
	select {
	case g.checking <- struct{}{}:
		defer func() { <-g.checking }()
	case <-ctx.Done(): // the last check isn't over, and may take until pongWait
		return false
	}
	g.lent = true
	if len(execute) == 0 || len(execute) > maxAtOnce {
		return g.answers(ctx, nil)
	}
	g.ordered = time.Now()
	return g.answers(ctx, execute)
}

// answers pings the guest, with lines behind the ping, and says whether the answer is the next thing that it says.
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

// end lets the guest end, kills it if it doesn't within a grace time, and returns when its container is gone.
func (g *guest) end() {
	g.hangUp()
	linger := time.AfterFunc(exitGrace, func() { g.kill(errLinger) })
	<-g.gone
	linger.Stop()
	g.kill(errOver)
}

// cut kills the guest and lets go whoever reads or writes its frames, since an engine may take its time to kill.
func (g *guest) cut(cause error) {
	g.kill(cause)
	g.hangUp()
}

// hangUp is for when no frame is wanted any more: the guest's stdin ends, and nobody reads what it says.
func (g *guest) hangUp() {
	g.stdoutR.CloseWithError(io.ErrClosedPipe)
	g.stdinW.Close()
}

// over says whether the container has ended, or is being killed.
func (g *guest) over() bool {
	select {
	case <-g.quiet:
		return true
	default:
		return g.life.Err() != nil
	}
}
