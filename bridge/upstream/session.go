package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

const (
	exitWait  = 500 * time.Millisecond // for the exit of a server that closed its output, to be able to say how it ended
	leftGrace = 500 * time.Millisecond // for what a server left behind, between SIGTERM and SIGKILL
	drainWait = 300 * time.Millisecond // for the rest of the output of a server that has ended
)

// session is one running server and the connection to it, from its start until it and everything it started is gone.
//
// It ends when the server does, when either side of the pipe breaks, or when the pool closes it; fail is the only way in.
// Three channels tell how far it is: dying (no new requests), over (cause is set, waiting callers fail), gone.
//
// mcp-go is given our own pipes (transport.NewIO) instead of the command, because its own transport ends a process but not
// its group, closes stderr before the process had a chance to say goodbye, blocks all callers while a server doesn't read,
// and has no limit for a line.
type session struct {
	server discovery.Server
	cfg    Config
	mask   *mask

	proc           *guard.Process
	stdout, stderr *os.File // our ends
	in             *inbox
	out            *outbox
	asks           *questions    // of the server
	able           Abilities     // that it is told of
	said           *ring         // on stderr
	saidAll        chan struct{} // stderr ended
	tr             *transport.Stdio
	meta           map[string]any // repeated with every request; nil on connections made by initialize
	ids            atomic.Int64
	tools          toolCache

	once   sync.Once
	reason error // why it is dying
	dying  chan struct{}
	cause  error // the same for a caller to read
	over   chan struct{}
	gone   chan struct{}
	endErr error // what could not be ended; read after gone
}

// launch starts the server's process and everything that reads and writes for it. The caller runs s.run until it returns.
func launch(cfg Config, server discovery.Server) (*session, error) {
	environ := cfg.Environ
	if environ == nil {
		environ = os.Environ()
	}
	cmd, err := command(server, environ)
	if err != nil {
		return nil, err
	}
	mask := newMask(server.Env, server.Args)
	s := &session{
		server: server, cfg: cfg, mask: mask, said: &ring{mask: mask},
		saidAll: make(chan struct{}), dying: make(chan struct{}), over: make(chan struct{}), gone: make(chan struct{}),
	}
	s.tools.turn = make(chan struct{}, 1)
	p, err := openPipes()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.theirs[0], p.theirs[1], p.theirs[2]
	s.proc, err = guard.LaunchTracked(cmd, cfg.Guard)
	closeAll(p.theirs[:])
	if err != nil {
		closeAll(p.ours[:])
		return nil, startError(server, err)
	}
	s.stdout, s.stderr = p.ours[1], p.ours[2]
	s.out = newOutbox(p.ours[0], cfg.MaxBacklog, cfg.StallTimeout, s.fail)
	s.asks = newQuestions(server.Name, s.out.reply)
	s.in = newInbox(s.stdout, cfg.MaxLine, mask, s.asks, s.said.noise, s.fail)
	s.tr = transport.NewIO(s.in, s.out, nil)
	return s, nil
}

// pipes are the three pipes of a child.
type pipes struct{ ours, theirs [3]*os.File }

func openPipes() (p pipes, err error) {
	for i := range p.ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(p.ours[:i])
			closeAll(p.theirs[:i])
			return p, fmt.Errorf("opening a pipe: %w", err)
		}
		p.ours[i], p.theirs[i] = r, w
		if i == 0 {
			p.ours[i], p.theirs[i] = w, r
		}
	}
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// connect makes the MCP connection. The protocol of the handshake comes first: a server that ignores the newer
// server/discover costs five seconds, and some die of it. One that answers the handshake with an error is asked by the newer
// protocol.
func (s *session) connect(ctx context.Context) error {
	info := mcp.InitializeRequest{Params: mcp.InitializeParams{
		ClientInfo:   mcp.Implementation{Name: s.cfg.ClientName, Version: s.cfg.ClientVersion},
		Capabilities: s.able.capabilities(),
	}}
	legacy := client.NewClient(s.tr, client.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	legacy.OnNotification(s.notified)
	// Start keeps its context for the requests of the server, which never reach mcp-go.
	if err := legacy.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	_, err := legacy.Initialize(ctx, info)
	if err == nil || !refused(err) || ctx.Err() != nil {
		return s.plain(ctx, err)
	}
	// A server of this protocol sends no requests.
	info.Params.Capabilities = mcp.ClientCapabilities{}
	modern := client.NewClient(renumbered{s.tr}, client.WithProtocolVersion(mcp.LATEST_PROTOCOL_VERSION))
	modern.OnNotification(s.notified)
	if err := modern.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	result, modernErr := modern.Initialize(ctx, info)
	if modernErr != nil {
		return s.plain(ctx, err) // what it said first
	}
	if !mcp.IsModernProtocol(result.ProtocolVersion) {
		return nil
	}
	s.meta = map[string]any{
		mcp.MetaKeyProtocolVersion:    result.ProtocolVersion,
		mcp.MetaKeyClientCapabilities: mcp.ClientCapabilities{},
		mcp.MetaKeyClientInfo:         info.Params.ClientInfo,
	}
	return nil
}

// renumbered gives requests other ids than a client before it on the same transport has used. The transport forgets an id only
// after it has handed over its answer, and would forget a new request of the same id with it.
type renumbered struct{ transport.Interface }

func (r renumbered) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if id, ok := req.ID.Value().(int64); ok {
		req.ID = mcp.NewRequestId(id + 1<<32)
	}
	return r.Interface.SendRequest(ctx, req)
}

// refused says whether a server is alive and answered with an error.
func refused(err error) bool {
	var broken *transport.Error
	return !errors.As(err, &broken)
}

// plain is an error of the handshake without what mcp-go wraps around it.
func (s *session) plain(ctx context.Context, err error) error {
	var broken *transport.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &broken):
		return s.ended(ctx)
	default:
		return fmt.Errorf("it answered the handshake wrongly: %s", s.mask.text(err.Error()))
	}
}

// notified runs on mcp-go's reading goroutine: it must not call the client, which would wait for that goroutine.
func (s *session) notified(n mcp.JSONRPCNotification) {
	if n.Method == string(mcp.MethodNotificationToolsListChanged) {
		s.tools.stale.Add(1)
	}
}

// fail begins the end of the session. The first reason counts. It doesn't block.
func (s *session) fail(reason error) {
	s.once.Do(func() {
		s.reason = reason
		close(s.dying)
	})
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

// run copies for the session until it ends and then ends everything that belongs to it.
func (s *session) run() {
	var copying sync.WaitGroup
	copying.Go(s.out.send)
	copying.Go(func() {
		s.said.drain(s.stderr)
		close(s.saidAll)
	})
	select {
	case <-s.dying:
	case <-s.proc.Exited():
		s.fail(errLeft)
	}
	s.cause = s.autopsy()
	close(s.over)
	_ = s.tr.Close() // wakes the callers and closes the server's stdin
	copying.Go(func() { _, _ = io.Copy(io.Discard, s.stdout) })
	s.asks.close()
	within(s.cfg.CloseTimeout*3/10, s.proc.Exited())
	s.endErr = s.proc.End(s.cfg.CloseTimeout * 3 / 10)
	within(drainWait, s.saidAll)
	closeAll([]*os.File{s.stdout, s.stderr}) // somebody may hold the other ends
	copying.Wait()
	s.asks.work.Wait()
	s.cfg.Log.Info("server ended", "server", s.server.Name, "cause", s.cause.Error())
	close(s.gone)
}

// autopsy says why the session ended, in the words for a caller. Where the server ended by itself it first waits a moment
// for the rest of its output, which may hold answers, and for its exit status.
func (s *session) autopsy() error {
	if !errors.Is(s.reason, errOutputEnded) && !errors.Is(s.reason, errInputClosed) && !errors.Is(s.reason, errLeft) {
		return s.reason
	}
	if !within(exitWait, s.proc.Exited()) {
		within(drainWait, s.saidAll)
		return s.reason
	}
	s.endErr = s.proc.End(leftGrace)
	within(drainWait, s.in.eof)
	within(drainWait, s.saidAll)
	state := "unknown status"
	if st := s.proc.State(); st != nil {
		state = st.String()
	}
	return fmt.Errorf("it ended by itself (%s); the next call starts it again", state)
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
