package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// A peer is the other side of one session: a child with its pipes, or a server at a URL. The
// session makes it, is its only user, and ends it. What it receives it gives to the session's conn.
//
// In this order: serve once; open for each handshake, beside it, and agreed after the one that
// succeeds; then, once the session is dying, autopsy, hangUp and end.
type peer interface {
	jsonrpc.Carrier
	// open prepares for a handshake of the newer protocol or the older one. It ends with ctx.
	open(ctx context.Context, modern bool) error
	// agreed is told the version of the protocol that is spoken from now on.
	agreed(version string)
	// modernFirst reports whether the first handshake is to be one of the newer protocol.
	modernFirst() bool
	// instead reports whether, after a handshake that failed so, another one over the peer's other
	// transport may do.
	instead(err error) bool
	// serve starts what moves messages until the peer is ended. It returns at once.
	serve()
	// noise keeps what the peer sent that is no message.
	noise(line []byte)
	// left is closed when the peer ended by itself; nil for one that doesn't tell.
	left() <-chan struct{}
	// autopsy returns why the session ended, in the words for a caller, from the reason given to fail.
	// It is bounded.
	autopsy(reason error) error
	// hangUp sends no more. It is bounded.
	hangUp()
	// end ends everything that belongs to the peer, within a bound, and names what it couldn't end.
	end() error
	// said returns the last that the peer wrote beside messages, for errors; empty for nothing.
	said() string
}

// session is the connection to one server, from its start until it and everything it started is
// gone.
//
// It ends when the server does, when either side of the connection breaks, or when the pool closes
// it; fail is the only way in. Three channels tell how far it is: dying (no new requests), over
// (cause is set, waiting callers fail), gone.
type session struct {
	server  discovery.Server // with the user's secrets
	defined discovery.Server // without
	cfg     Config
	mask    *mask
	hints   hints
	can     Abilities // that it is told of

	peer      peer
	conn      *jsonrpc.Conn
	questions *questions
	progress  observers
	changes   subscription
	about     about          // set by handshake
	meta      map[string]any // repeated with every request; nil on connections made by initialize
	tools     toolCache
	ready     chan struct{} // closed once the connection is made
	limiter   *limiter
	long      chan struct{} // holds one for each long answer of the server that is read
	idle      *idleTimer

	judged   func() error // returns cause, with when the server is started again
	logged   *ring        // what the server logs by the protocol
	answered atomic.Bool  // it has answered something after the handshake
	doubt    doubt

	ending
}

// ending is how far the end of a session is, and why.
type ending struct {
	once   sync.Once
	reason error // why it is dying
	dying  chan struct{}
	cause  error // the same for a caller to read
	over   chan struct{}
	gone   chan struct{}
	endErr error // what could not be ended; read after gone
}

// hints are what one session found out of its server that spares the next one a failing handshake.
type hints struct {
	modern bool // it refuses initialize and answers server/discover
	older  bool // the reverse; both false: it isn't known yet
	other  bool // it speaks the other one of Streamable HTTP and SSE than its configuration names
}

// newSession returns a session without a peer.
func newSession(cfg Config, server discovery.Server, h hints) *session {
	s := &session{
		server: server, cfg: cfg, mask: maskOf(server, cfg.Environ...), hints: h, ready: make(chan struct{}),
		ending: ending{dying: make(chan struct{}), over: make(chan struct{}), gone: make(chan struct{})},
	}
	s.tools.s, s.tools.turn = s, make(chan struct{}, 1)
	s.changes.s = s
	s.limiter = newLimiter(cfg.MaxCalls, cfg.MaxQueue)
	s.long = make(chan struct{}, longAnswersEach)
	s.idle = &idleTimer{after: cfg.IdleTimeout, end: func() {
		s.fail(fmt.Errorf("%w for %v; the next call starts it again", errIdle, cfg.IdleTimeout))
	}}
	s.logged = &ring{mask: s.mask}
	s.doubt.open = map[int64]context.Context{}
	s.questions = &questions{server: server.Name, calls: map[int64]caller{}}
	return s
}

// connectTo gives the session its peer.
func (s *session) connectTo(p peer) {
	s.peer = p
	s.conn = jsonrpc.NewConn(context.Background(), p, jsonrpc.Options{
		MaxRequests: maxQuestions, IDs: "b-", Accept: s.accept, Notified: s.notified,
		Panicked: func(r *jsonrpc.Request, value any, stack []byte) error {
			s.cfg.Log.Error("a server's request has panicked", "server", s.server.Name, "method", r.Method,
				"panic", fmt.Sprint(value), "stack", string(stack))
			return errors.New("the bridge has failed on this request") // the server is a stranger
		},
	})
	s.conn.AllowBatches(true)
}

// launch makes a session with a server. The caller runs s.run until it returns.
func launch(cfg Config, defined discovery.Server, h hints) (*session, error) {
	server, secrets, err := defined.Reveal(cfg.Secret)
	if err != nil {
		return nil, err
	}
	s := newSession(cfg, server, h)
	s.defined = defined
	for _, secret := range secrets {
		for _, line := range append(strings.Split(secret, "\n"), secret) {
			s.mask.configure(line)
		}
	}
	var p peer
	if server.Transport == discovery.HTTP || server.Transport == discovery.SSE {
		p, err = newRemote(s)
	} else {
		p, err = startProcess(s)
	}
	if err != nil {
		return nil, err
	}
	s.connectTo(p)
	return s, nil
}

// greeted opens the session to callers, once the connection is made.
func (s *session) greeted() {
	close(s.ready)
	s.idle.begin()
}

// fail begins the end of the session. The first reason counts. It doesn't block.
func (s *session) fail(reason error) {
	s.once.Do(func() {
		s.reason = reason
		close(s.dying)
	})
}

// endedItself reports whether a session that is dying was ended by its server.
func (s *session) endedItself() bool {
	return s.isDying() && (errors.Is(s.reason, errOutputEnded) || errors.Is(s.reason, errInputClosed) ||
		errors.Is(s.reason, errLeft))
}

// failure returns why the server could not be started, with the last that it said.
func (s *session) failure(err error) *ServerError {
	return &ServerError{Server: s.server.Name, Op: opStart, Err: err, Stderr: s.peer.said(),
		Logged: s.logged.tail()}
}

// wrap adds what this layer knows to an error of the session.
func (s *session) wrap(op string, err error) error {
	e := &ServerError{Server: s.server.Name, Op: op, Err: err}
	if isClosed(s.over) && !errors.Is(s.cause, ErrClosed) && errors.Is(err, s.cause) {
		e.Stderr, e.Logged = s.peer.said(), s.logged.tail()
	}
	return e
}

func (s *session) isDying() bool { return isClosed(s.dying) }

// ended waits until it is known why the session ended and returns that, or the context's error.
func (s *session) ended(ctx context.Context) error {
	select {
	case <-s.over:
		return s.cause
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run lives until the session ends and everything that belongs to it is gone.
func (s *session) run() {
	s.peer.serve()
	var following sync.WaitGroup
	listening, cancel := context.WithCancel(context.Background())
	defer cancel()
	following.Go(func() { s.changes.listen(listening) })
	defer following.Wait()
	select {
	case <-s.dying:
	case <-s.peer.left():
		s.fail(errLeft)
	}
	cancel()
	s.idle.stop()
	s.cause = s.peer.autopsy(s.reason)
	s.cause = s.judged()
	close(s.over)
	s.conn.Close(s.cause)
	s.peer.hangUp()
	s.endErr = s.peer.end()
	s.conn.Wait()
	if said := s.peer.said(); said != "" && s.endedItself() {
		s.cfg.Log.Warn("server ended by itself", "server", s.server.Name, "cause", s.cause.Error(), "stderr", said)
	} else {
		s.cfg.Log.Info("server ended", "server", s.server.Name, "cause", s.cause.Error())
	}
	close(s.gone)
}

// within waits for a channel to be closed, for at most d, and reports whether it is.
func within(d time.Duration, c <-chan struct{}) bool {
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	select {
	case <-c:
	case <-timeout.C:
	}
	return isClosed(c) // both may have been ready
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
