package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// A Pool holds one connection to each of the configured servers. It is made by NewPool; its methods
// may be called concurrently.
type Pool struct {
	cfg    Config
	ctx    context.Context // of everything that outlives a call; ended by Close
	cancel context.CancelFunc
	close  func() error
	work   sync.WaitGroup // every dial and every session

	mu      sync.Mutex
	closed  bool
	current *generation     // the servers as they are configured now
	known   map[*entry]bool // those of all generations, and those that are still ending
}

// entry is one configured server.
type entry struct {
	server    discovery.Server
	principal string // who has it alone; empty: all share it

	hints hints
	live  *session // the latest, perhaps dying; nil before the first
	dial  *dial    // under way; nil for none
	held  int      // by how many generations; 0: it is to end

	backoff backoff
	failed  *ServerError // the latest failure that counts there
}

// dial is one attempt to start a server, which any number of callers wait for.
type dial struct {
	able    Abilities // of the client that it is made for
	done    chan struct{}
	session *session
	err     error
}

// NewPool makes a pool and starts nothing.
func NewPool(cfg Config) *Pool {
	p := &Pool{cfg: cfg.withDefaults(), known: map[*entry]bool{}}
	p.current = p.generation(cfg.Servers, nil)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.close = sync.OnceValue(p.shutDown)
	return p
}

// Tools returns the list of a server's tools, of all its pages. The server is started if need be.
// The list is kept while the session lives and the server doesn't say that it changed. A tool
// without a name is left out and logged; one with an odd schema isn't. The slice is the caller's,
// the raw fields in it are not to be changed.
//
// The error is ErrUnknownServer, ErrClosed, or a *ServerError. It returns at once when ctx ends.
func (p *Pool) Tools(ctx context.Context, server string) ([]Tool, error) {
	return on(ctx, p, server, "listing its tools", func(ctx context.Context, s *session) ([]Tool, error) {
		return s.listTools(ctx)
	})
}

// Call calls a tool with a JSON object, or nil for none, and returns the CallToolResult as the
// server sent it, byte for byte, except bytes that are no UTF-8, which are replaced by U+FFFD. A
// result with isError is a result. The server is started if need be; a call is sent once or not at
// all, and again only where a result over the newer protocol asks for that, with the answers of the
// client that ctx has: see WithClient.
//
// The error is ErrUnknownServer, ErrClosed, or a *ServerError around a *RPCError, the context's
// error, or what ended the session. When ctx ends Call returns at once and the server is told to
// stop.
func (p *Pool) Call(ctx context.Context, server, tool string, args json.RawMessage) (json.RawMessage, error) {
	return on(ctx, p, server, fmt.Sprintf("calling the tool %q", tool),
		func(ctx context.Context, s *session) (json.RawMessage, error) {
			args, err := objectOf(args)
			if err != nil {
				return nil, err
			}
			return s.work(ctx, string(mcp.MethodToolsCall), map[string]any{"name": tool, "arguments": args})
		})
}

// on returns what f returns of the session with a server, which is started if need be. The session
// isn't ended as unused meanwhile.
func on[T any](
	ctx context.Context, p *Pool, server, op string, f func(context.Context, *session) (T, error),
) (result T, err error) {
	ctx, unpin := p.Pin(ctx)
	defer unpin()
	s, err := p.session(ctx, server)
	if err != nil {
		return result, err
	}
	defer s.idle.use()()
	result, err = f(ctx, s)
	if err != nil {
		err = s.wrap(op, err)
	}
	return result, err
}

// Close ends every server with everything it started: it closes their stdin, then sends SIGTERM,
// then SIGKILL, to all at the same time, within CloseTimeout as a whole. Calls in flight fail with
// ErrClosed. It may be called more than once; all calls return when the first does. The error names
// servers of which something could not be ended.
func (p *Pool) Close() error { return p.close() }

func (p *Pool) shutDown() error {
	p.mu.Lock()
	p.closed = true
	for _, s := range p.sessions() {
		s.fail(ErrClosed)
	}
	p.mu.Unlock()
	p.cancel() // ends the dials
	if p.cfg.Logins != nil {
		p.work.Go(p.cfg.Logins.Close)
	}
	all := make(chan struct{})
	go func() { // ends with the last session
		p.work.Wait()
		close(all)
	}()
	ended := within(p.cfg.CloseTimeout, all)
	var left []string
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions() {
		if !isClosed(s.gone) || s.endErr != nil {
			left = append(left, s.server.Name)
		}
	}
	slices.Sort(left)
	switch {
	case len(left) > 0:
		return fmt.Errorf("processes of these servers could not be ended within %v: %s", p.cfg.CloseTimeout,
			strings.Join(left, ", "))
	case !ended:
		return fmt.Errorf("the servers were not ended within %v", p.cfg.CloseTimeout)
	}
	return nil
}

// session returns the connection to a server, made if need be. A server that may be stuck is asked
// first whether it still answers, and started again if it doesn't.
func (p *Pool) session(ctx context.Context, server string) (*session, error) {
	s, asked, err := p.connection(ctx, server)
	if asked == nil {
		return s, err
	}
	select {
	case <-asked:
		s, _, err = p.connection(ctx, server)
		return s, err
	case <-ctx.Done():
		return nil, &ServerError{Server: server, Op: "asking whether it still answers", Err: ctx.Err()}
	}
}

// connection returns the connection to a server, made if need be, and where the server is to be
// asked first whether it still answers what is closed once it was.
func (p *Pool) connection(ctx context.Context, server string) (*session, <-chan struct{}, error) {
	able := able(ctx)
	p.mu.Lock()
	e := p.find(ctx, server)
	switch {
	case p.closed:
		p.mu.Unlock()
		return nil, nil, ErrClosed
	case e == nil:
		p.mu.Unlock()
		return nil, nil, fmt.Errorf("%w: %q", ErrUnknownServer, server)
	case e.ready():
		defer p.mu.Unlock()
		return e.live, p.asked(e.live), nil
	}
	if e.dial == nil {
		if err := p.startable(e); err != nil {
			p.mu.Unlock()
			return nil, nil, err
		}
		d := &dial{able: able, done: make(chan struct{})}
		e.dial = d
		p.work.Go(func() { p.connect(e, d) })
	}
	d := e.dial
	p.mu.Unlock()
	select {
	case <-d.done:
		return d.session, nil, d.err
	case <-ctx.Done():
		return nil, nil, &ServerError{Server: server, Op: opStart, Err: ctx.Err()}
	}
}

// startable returns why a server isn't started now; nil when it may be. The caller has p.mu.
func (p *Pool) startable(e *entry) error {
	if p.cfg.Refuse != nil {
		if err := p.cfg.Refuse(e.server); err != nil {
			return &ServerError{Server: e.server.Name, Op: opStart, Err: err}
		}
	}
	if err := p.crowded(e); err != nil {
		return &ServerError{Server: e.server.Name, Op: opStart, Err: err}
	}
	return e.backoff.refusal(e.failed)
}

// ready reports whether there is a connection that can be used, and keeps it from being ended as
// unused. The caller has p.mu.
func (e *entry) ready() bool {
	if e.live == nil || e.dial != nil {
		return false
	}
	e.live.idle.use()()
	return !e.live.isDying()
}

// judge counts the end of a session for or against its server, and returns the reason of that end
// with when the server is started again.
func (p *Pool) judge(e *entry, s *session) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case s.answered.Load():
		e.backoff = backoff{}
	case isClosed(s.ready) && s.endedItself(): // one that is being made is judged by connect
		e.backoff.failure()
		e.failed = s.failure(errBarren)
	}
	return onlyAfter(s.cause, e.backoff.pause())
}

// connect carries out one dial, under the pool's context, also when its callers have left.
func (p *Pool) connect(e *entry, d *dial) {
	began := time.Now()
	s, err := p.start(e, d.able)
	failed, failure := errors.AsType[*ServerError](err)
	p.mu.Lock()
	switch {
	case p.closed:
		if err == nil {
			s.fail(ErrClosed)
		}
		err = ErrClosed
	case err == nil && e.held == 0: // it was retired while it was being started
		s.fail(errRetired)
	case failure:
		e.backoff.failure()
		e.failed, err = failed, failed.with(onlyAfter(failed.Err, e.backoff.pause()))
	}
	e.dial = nil
	p.mu.Unlock()
	if err != nil {
		d.err = err
	} else {
		d.session = s
		about := []any{"server", e.server.Name, "took", time.Since(began)}
		if e.principal != "" {
			about = append(about, "principal", e.principal)
		}
		p.cfg.Log.Info("server started", about...)
	}
	close(d.done)
}

// start starts a server and makes the connection. A session that was there before must be gone
// first: the server may hold something that there is only one of.
func (p *Pool) start(e *entry, able Abilities) (*session, error) {
	if e.live != nil { // only dials change that, one at a time
		<-e.live.gone
	}
	if p.ctx.Err() != nil {
		return nil, ErrClosed
	}
	s, err := launch(p.cfg, e.server, e.hints)
	if err != nil {
		return nil, &ServerError{Server: e.server.Name, Op: opStart, Err: err}
	}
	s.can, s.judged = able, func() error { return p.judge(e, s) }
	p.work.Go(s.run)
	p.mu.Lock()
	e.live = s
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.StartTimeout)
	defer cancel()
	err = handshake{s}.connect(ctx)
	if err == nil {
		e.hints = s.hints // of this dial alone until it is done
		s.greeted()
		return s, nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		next := "see whether its URL can be reached from here"
		if e.server.Command != "" {
			next = "to see what it waits for, run by hand what mcp-bridge servers " +
				text.ShellWord(e.server.Name) + " shows"
		}
		if strings.Contains(s.peer.said(), noiseMark) {
			next = "it writes to stdout what is no MCP message; " + next
		}
		err = fmt.Errorf("it did not answer within %v; %s; MCP_BRIDGE_UPSTREAM_START_TIMEOUT gives it longer",
			p.cfg.StartTimeout, next)
	}
	s.fail(err)
	return nil, s.failure(err)
}

// Health is how a server is, as far as starting it and listing its tools tells.
type Health struct {
	Start time.Duration // until the connection was made; 0 where it was there already
	List  time.Duration // until its tools were listed
	Tools int
	Err   error // why it can't be used; what Tools returns

	Stderr, Logged string // the last that it said, as in ServerError, also where nothing is wrong
}

// Check starts a server if need be and lists its tools. It returns soon after ctx ends. It may be
// called concurrently.
func (p *Pool) Check(ctx context.Context, server string) (h Health) {
	began := time.Now()
	h.Tools, h.Err = on(ctx, p, server, "listing its tools",
		func(ctx context.Context, s *session) (int, error) {
			h.Start = time.Since(began)
			tools, err := s.listTools(ctx)
			h.List = time.Since(began) - h.Start
			h.Stderr, h.Logged = s.peer.said(), s.logged.tail()
			return len(tools), err
		})
	return h
}

// Running reports whether a server has a connection that the next call would use, so that asking it
// starts nothing.
func (p *Pool) Running(ctx context.Context, server string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.find(ctx, server)
	return e != nil && !p.closed && e.live != nil && e.dial == nil && !e.live.isDying()
}
