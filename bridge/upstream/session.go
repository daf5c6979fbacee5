package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// A peer is the other side of one session: a child with its pipes, or a server at a URL. The session makes it, is its only user,
// and ends it. Whatever it receives goes through the session's inbox before mcp-go sees it.
//
// In this order: open for each handshake, serve once, beside it; then, once the session is dying, autopsy, hangUp and end.
type peer interface {
	// open makes a transport for a handshake, of the newer protocol or the older one. It replaces the one before.
	open(modern bool) (transport.Interface, error)
	// modernFirst reports whether the first handshake is to be one of the newer protocol.
	modernFirst() bool
	// instead says whether, after a handshake that failed so, another one over the peer's other transport may do.
	instead(err error) bool
	// serve moves what has to be moved until the peer is ended. It returns at once; end waits for what it started.
	serve()
	// post sends one message that nobody waits for. It doesn't block, and is dropped once the peer hangs up.
	post(line []byte)
	// left is closed when the peer ended by itself; nil for one that doesn't tell.
	left() <-chan struct{}
	// autopsy says why the session ended, in the words for a caller, from the reason given to fail. It is bounded.
	autopsy(reason error) error
	// hangUp closes the transport, which wakes its callers. It is bounded.
	hangUp()
	// end ends everything that belongs to the peer, within a bound, and names what it couldn't end.
	end() error
	// said is the last that the peer wrote beside messages, for errors; empty for nothing.
	said() string
}

// session is the connection to one server, from its start until it and everything it started is gone.
//
// It ends when the server does, when either side of the connection breaks, or when the pool closes it; fail is the only way in.
// Three channels tell how far it is: dying (no new requests), over (cause is set, waiting callers fail), gone.
type session struct {
	server discovery.Server
	cfg    Config
	mask   *mask
	manner manner

	version string // what the server calls itself, and its version; set by connect
	purpose string // what it says it is for; likewise
	loop    error  // it is ourselves; set by handshake
	tells   bool   // that its tools have changed; set by handshake

	peer  peer
	in    *inbox
	asks  *questions          // of the server
	able  Abilities           // that it is told of
	tr    transport.Interface // of the handshake that succeeded; set by connect
	meta  map[string]any      // repeated with every request; nil on connections made by initialize
	ids   atomic.Int64
	tools toolCache
	news  chan struct{} // has room for one: the tools have changed
	ready chan struct{} // closed once the connection is made
	turns *turns
	rest  *rest

	pause   func() time.Duration // until the server is started again, once this has ended
	journal *ring                // of what the server logs by the protocol
	useful  atomic.Bool          // it has answered something after the handshake

	once   sync.Once
	reason error // why it is dying
	dying  chan struct{}
	cause  error // the same for a caller to read
	over   chan struct{}
	gone   chan struct{}
	endErr error // what could not be ended; read after gone
}

// manner is what one session found out of its server that spares the next one a failing handshake.
type manner struct {
	modern bool // it refuses initialize and answers server/discover
	older  bool // the reverse; both false: it isn't known yet
	other  bool // it is spoken to by the other one of Streamable HTTP and SSE than its configuration names
}

// launch makes the peer of a server. The caller runs s.run until it returns.
func launch(cfg Config, server discovery.Server, m manner) (*session, error) {
	s := &session{
		server: server, cfg: cfg, mask: newMask(server.Env, server.Args), manner: m,
		dying: make(chan struct{}), over: make(chan struct{}), gone: make(chan struct{}),
	}
	s.tools.turn, s.news, s.ready = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
	s.turns = newTurns(cfg.MaxCalls, cfg.MaxQueue)
	s.rest = &rest{after: cfg.IdleTimeout, end: func() { s.fail(fmt.Errorf("%w for %v; the next call starts it again", errIdle, cfg.IdleTimeout)) }}
	s.journal = &ring{mask: s.mask}
	var err error
	if server.Transport == discovery.HTTP || server.Transport == discovery.SSE {
		s.peer, err = newRemote(s)
	} else {
		s.peer, err = startProcess(s)
	}
	if err != nil {
		return nil, err
	}
	s.in.journal = s.journal
	return s, nil
}

// greeted is called once the connection is made: the session can be used, and says what is to be logged.
func (s *session) greeted() {
	close(s.ready)
	s.rest.begin()
	if s.in.logs.Load() && s.meta == nil {
		s.peer.post(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"b-log","method":"logging/setLevel","params":{"level":%q}}`+"\n", s.cfg.LogLevel))
	}
}

// handshake makes the MCP connection, and remembers for the next session what worked: which of the
// two protocols and, over HTTP, which transport.
func (s *session) handshake(ctx context.Context) error {
	err := s.shakeEither(ctx)
	if err != nil && ctx.Err() == nil && s.peer.instead(err) {
		if s.shakeEither(ctx) == nil {
			s.manner.other = !s.manner.other
			return nil
		}
	}
	return s.plain(ctx, err)
}

// shakeEither makes a handshake of the newer protocol or the older one. Over HTTP the newer one comes
// first, as the specification of 2026-07-28 has it (basic/transports/streamable-http, Backward
// Compatibility). Over pipes the older one does: a server that ignores server/discover costs five
// seconds there, and some die of it.
func (s *session) shakeEither(ctx context.Context) error {
	modern := s.manner.modern || s.peer.modernFirst() && !s.manner.older
	err := s.shake(ctx, modern)
	var version mcp.UnsupportedProtocolVersionError
	if errors.As(err, &version) && slices.Contains(version.Supported, mcp.LATEST_PROTOCOL_VERSION) {
		err = s.shake(ctx, modern) // it names the very version that it was asked by
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if !refused(err) && (!modern || !mayBeOlder(err)) || modern && isModern(err) {
		return err
	}
	second := s.shake(ctx, !modern)
	if second != nil && (!modern || isModern(second)) {
		return err // what it said first
	}
	return second
}

// mayBeOlder reports whether a handshake of the newer protocol over HTTP failed in a way that leaves
// it open whether the server knows the older one.
func mayBeOlder(err error) bool {
	var failed *exchangeError
	var login *LoginError
	var unreachable *unreachableError
	return errors.As(err, &failed) && !errors.As(err, &login) && !errors.As(err, &unreachable)
}

// isModern reports whether an error is one that only a server of the newer protocol answers with.
func isModern(err error) bool {
	var version mcp.UnsupportedProtocolVersionError
	if errors.As(err, &version) {
		return len(version.Supported) > 0 && slices.Min(version.Supported) > mcp.LATEST_LEGACY_PROTOCOL_VERSION // they are dates
	}
	var header mcp.HeaderMismatchError
	var capability mcp.MissingRequiredClientCapabilityError
	return errors.As(err, &header) || errors.As(err, &capability)
}

// shake makes one handshake, of the newer protocol or the older one.
func (s *session) shake(ctx context.Context, modern bool) error {
	tr, err := s.peer.open(modern)
	if err != nil {
		return err
	}
	version := mcp.LATEST_LEGACY_PROTOCOL_VERSION
	if modern {
		version = mcp.LATEST_PROTOCOL_VERSION
	}
	info := mcp.InitializeRequest{Params: mcp.InitializeParams{ClientInfo: mcp.Implementation{Name: s.cfg.ClientName, Version: s.cfg.ClientVersion}}}
	if !modern { // the newer protocol says it with each request
		info.Params.Capabilities = s.able.capabilities()
	}
	c := client.NewClient(tr, client.WithProtocolVersion(version), client.WithDiscoverTimeout(s.cfg.StartTimeout/2))
	c.OnNotification(s.notified)
	stop := context.AfterFunc(ctx, func() { _ = tr.Close() }) // some wait for the server in Start
	defer stop()
	// A transport keeps the context it is started with for as long as it lives.
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	result, err := c.Initialize(ctx, info)
	if m, ok := tr.(*newerStreamable); ok && err != nil && m.err != nil {
		return m.err // what led mcp-go to try initialize
	}
	if err != nil {
		return err
	}
	if !stop() { // Initialize doesn't notice where its last message is all that was late
		return ctx.Err()
	}
	s.version, s.loop = s.mask.text(called(result.ServerInfo)), s.loopTo(result.Capabilities)
	s.purpose = purpose(result, s.mask)
	s.tells = result.Capabilities.Tools != nil && result.Capabilities.Tools.ListChanged
	s.tr, s.meta, s.manner.modern = tr, nil, mcp.IsModernProtocol(result.ProtocolVersion)
	s.manner.older = !s.manner.modern
	if s.manner.modern {
		s.meta = map[string]any{
			mcp.MetaKeyProtocolVersion: result.ProtocolVersion,
			mcp.MetaKeyClientInfo:      info.Params.ClientInfo,
			mcp.MetaKeyLogLevel:        s.cfg.LogLevel,
		}
	}
	return nil
}

// refused says whether a server is alive and answered with an error.
func refused(err error) bool {
	var broken *transport.Error
	var failed *exchangeError
	return !errors.As(err, &broken) && !errors.As(err, &failed)
}

// cut says whether an exchange failed because the session is dying, which says nothing of the reason.
func (s *session) cut(failed *exchangeError) bool {
	return s.isDying() && errors.Is(failed.err, context.Canceled)
}

// plain is an error of the handshake without what mcp-go wraps around it.
func (s *session) plain(ctx context.Context, err error) error {
	var broken *transport.Error
	var failed *exchangeError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed) && !s.cut(failed):
		return failed.err
	case errors.As(err, &broken) && s.peer.left() != nil, s.peer.left() == nil && s.isDying(): // a process whose pipes broke is about to
		return s.ended(ctx)
	default:
		return fmt.Errorf("it answered the handshake wrongly: %s", s.mask.text(err.Error()))
	}
}

// notified runs on mcp-go's reading goroutine: it must not call the client, which would wait for that goroutine.
func (s *session) notified(n mcp.JSONRPCNotification) {
	if n.Method == string(mcp.MethodNotificationToolsListChanged) {
		s.changed()
	}
}

// fail begins the end of the session. The first reason counts. It doesn't block.
func (s *session) fail(reason error) {
	s.once.Do(func() {
		s.reason = reason
		close(s.dying)
	})
}

// endedItself says of a session that is dying whether that is its server's doing.
func (s *session) endedItself() bool {
	return s.isDying() && (errors.Is(s.reason, errOutputEnded) || errors.Is(s.reason, errInputClosed) || errors.Is(s.reason, errLeft))
}

// failure is why the server could not be started, with the last that it said.
func (s *session) failure(err error) *ServerError {
	return &ServerError{Server: s.server.Name, Op: opStart, Err: err, Stderr: s.peer.said(), Logged: s.journal.tail()}
}

func (s *session) isDying() bool {
	select {
	case <-s.dying:
		return true
	default:
		return false
	}
}

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
	following.Go(func() { s.listen(listening) })
	if s.cfg.Listed != nil {
		following.Go(s.follow)
	}
	defer following.Wait()
	select {
	case <-s.dying:
	case <-s.peer.left():
		s.fail(errLeft)
	}
	cancel()
	s.rest.stop()
	s.cause = s.peer.autopsy(s.reason)
	close(s.over)
	s.peer.hangUp()
	s.asks.close()
	s.endErr = s.peer.end()
	s.asks.work.Wait()
	s.cfg.Log.Info("server ended", "server", s.server.Name, "cause", s.cause.Error())
	close(s.gone)
}

// within waits for a channel to be closed, for at most d, and says whether it is.
func within(d time.Duration, c <-chan struct{}) bool {
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	select {
	case <-c:
		return true
	case <-timeout.C:
	}
	select { // both may have been ready
	case <-c:
		return true
	default:
		return false
	}
}
