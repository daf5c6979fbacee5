package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	dialTimeout  = 10 * time.Second // for a TCP connection, and again for TLS
	postTimeout  = 30 * time.Second // for a message that nobody waits for
	hangUpWait   = time.Second      // for telling a server that its session is over
	maxPosts     = 256              // messages that wait to be sent, beside requests
	maxRedirects = 3
	noTimeout    = 365 * 24 * time.Hour // the caller's context is the only clock
)

// remote is a server at a URL, over Streamable HTTP or the older HTTP with server-sent events. mcp-go's transports keep the
// protocol: sessions, streams, their resumption, the endpoint. Everything they send and receive passes a gate (gate.go), for
// they bound nothing, take every refusal of a first request for an older server, wait for ever on a second answer, and round
// the numbers in an error's data.
type remote struct {
	s      *session
	ctx    context.Context // of what outlives a call; ended by hangUp
	cancel context.CancelFunc
	base   *http.Transport
	client *http.Client
	gate   *gate
	posts  chan []byte
	work   sync.WaitGroup

	mu       sync.Mutex
	tr       transport.Interface // of the last handshake
	sse      bool
	switched bool
}

// newRemote makes the connection's parts. It sends nothing.
func newRemote(s *session) (*remote, error) {
	u, err := url.Parse(s.server.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("its URL is none of http or https; correct it in %s", origin(s.server))
	}
	r := &remote{s: s, posts: make(chan []byte, maxPosts), sse: (s.server.Transport == discovery.SSE) != s.manner.other}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.base = newTransport()
	if socket := s.server.Socket; socket != "" {
		dial := r.base.DialContext
		r.base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, "unix", socket) }
	}
	s.asks = newQuestions(s.server.Name, s.cfg.Log, r.post)
	s.in = newInbox(bytes.NewReader(nil), s.cfg.MaxLine, s.mask, s.asks, func([]byte) {}, s.fail)
	r.gate = newGate(r, u)
	r.client = &http.Client{Transport: r.gate, CheckRedirect: r.gate.redirect}
	return r, nil
}

// newTransport is a connection pool of its own: sessions share nothing, and end what they have opened.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 256 << 10,
		ExpectContinueTimeout:  time.Second,
	}
}

// open makes a new transport each time: mcp-go's keeps a session's id for good.
func (r *remote) open(modern bool) (tr transport.Interface, err error) {
	r.mu.Lock()
	before, sse := r.tr, r.sse
	r.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	silent := slog.New(slog.DiscardHandler)
	switch {
	case sse:
		var plain *transport.SSE
		plain, err = transport.NewSSE(r.s.server.URL, transport.WithHTTPClient(r.client), transport.WithSSELogger(silent),
			transport.WithEndpointTimeout(r.s.cfg.StartTimeout), transport.WithResponseTimeout(noTimeout))
		tr = patient{plain}
	case modern: // its stream of notifications would pin the older protocol
		var streamable *transport.StreamableHTTP
		streamable, err = transport.NewStreamableHTTP(r.s.server.URL, transport.WithHTTPBasicClient(r.client), transport.WithHTTPLogger(silent))
		tr = &newerStreamable{StreamableHTTP: streamable}
	default:
		tr, err = transport.NewStreamableHTTP(r.s.server.URL, transport.WithHTTPBasicClient(r.client), transport.WithHTTPLogger(silent),
			transport.WithContinuousListening()) //nolint:staticcheck // the older protocol has no other way to hear of changes
	}
	if err != nil {
		return nil, fmt.Errorf("its URL can't be used; correct it in %s", origin(r.s.server))
	}
	r.gate.begin(sse, modern)
	r.mu.Lock()
	r.tr = tr
	r.mu.Unlock()
	if r.s.isDying() { // hangUp may have come before
		_ = tr.Close()
	}
	return tr, nil
}

// instead changes to the other transport, once, where the server refused the configured one in the way that says so.
func (r *remote) instead(err error) bool {
	var other *otherTransportError
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.switched || !errors.As(err, &other) {
		return false
	}
	r.switched, r.sse = true, !r.sse
	return true
}

func (r *remote) modernFirst() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.sse
}

// newerStreamable is mcp-go's transport for a handshake of the newer protocol. mcp-go goes on with
// initialize whatever the answer to server/discover was, and forgets that one.
type newerStreamable struct {
	*transport.StreamableHTTP
	err error // why server/discover failed
}

func (m *newerStreamable) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	switch req.Method {
	case string(mcp.MethodInitialize):
		return nil, m.err
	case string(mcp.MethodServerDiscover):
	default:
		return m.StreamableHTTP.SendRequest(ctx, req)
	}
	resp, err := m.StreamableHTTP.SendRequest(ctx, req)
	var about struct {
		Versions []string `json:"supportedVersions"`
	}
	switch {
	case err != nil:
		m.err = err
	case resp.Error != nil:
		m.err = resp.Error.AsError()
	case json.Unmarshal(resp.Result, &about) != nil || len(about.Versions) == 0:
		m.err = errors.New("its answer to server/discover names no version of the protocol")
		return nil, m.err
	}
	return resp, err
}

// patient is mcp-go's transport without a clock of its own, which it sets to the caller's deadline, and which may be the first of
// the two to ring.
type patient struct{ *transport.SSE }

func (p patient) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	return p.SSE.SendRequest(undated{ctx}, req)
}

// undated is a context that ends when it ends, and doesn't say beforehand.
type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

func (r *remote) serve() { r.work.Go(r.sendPosts) }

// post queues a message that nobody waits for. A server that asks without end and doesn't take the answers is ended.
func (r *remote) post(line []byte) {
	select {
	case r.posts <- bytes.Clone(line):
	default:
		r.s.fail(&endError{why: "it asks more than it takes answers, and is left", again: "connects again"})
	}
}

// sendPosts sends them one after the other, so that a server that is slow costs one connection.
func (r *remote) sendPosts() {
	for {
		select {
		case line := <-r.posts:
			r.send(line)
		case <-r.ctx.Done():
			return
		}
	}
}

func (r *remote) send(line []byte) {
	ctx, cancel := context.WithTimeout(r.ctx, postTimeout)
	defer cancel()
	to, header := r.gate.address()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(bytes.TrimSpace(line)))
	if err != nil {
		return
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", acceptBoth)
	resp, err := r.client.Do(req)
	if err != nil {
		return // whoever it concerns sees the connection break, or their own clock
	}
	_ = resp.Body.Close()
}

func (r *remote) left() <-chan struct{} { return nil }

func (r *remote) autopsy(reason error) error { return reason }

func (r *remote) hangUp() {
	r.mu.Lock()
	tr := r.tr
	r.mu.Unlock()
	if tr != nil {
		_ = tr.Close() // tells the server, within hangUpWait: see gate.RoundTrip
	}
	r.cancel()
}

func (r *remote) end() error {
	r.work.Wait()
	r.base.CloseIdleConnections()
	return nil
}

func (r *remote) said() string { return "" }

// exchangeError is what went wrong with one HTTP request. It comes back out of mcp-go, whose own words around it, the URL among
// them, are left out.
type exchangeError struct{ err error }

func (e *exchangeError) Error() string { return e.err.Error() }
func (e *exchangeError) Unwrap() error { return e.err }

// otherTransportError says that the server is there and refuses the first request as one does that knows only the other of
// Streamable HTTP and SSE.
type otherTransportError struct{ err error }

func (e *otherTransportError) Error() string { return e.err.Error() }
func (e *otherTransportError) Unwrap() error { return e.err }

// What ended a session over HTTP.
var (
	errSessionGone = errors.New("it no longer knows the session, as after a restart; the call was not carried out, and the next one begins a new session")
	errStreamEnded = &endError{why: "it ended the stream of events", again: "connects again"}
)

// unreachableError says that no answer came.
type unreachableError struct{ why string }

func (e *unreachableError) Error() string { return "it can't be reached: " + e.why }

// LoginError says that a server wants an authorization that the user can give.
type LoginError struct {
	Server string
	Scope  string // that the server asks for; empty where it names none
	More   bool   // there is an authorization, and it isn't enough
}

func (e *LoginError) Error() string {
	what := "it wants to be authorized"
	if e.More {
		what = "it wants more than it was authorized for"
	}
	what += "; type: mcp-bridge login " + text.ShellWord(e.Server)
	if e.Scope != "" {
		what += " --scope " + text.ShellWord(e.Scope)
	}
	return what
}
