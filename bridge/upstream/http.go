package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	dialTimeout  = 10 * time.Second // for a TCP connection, and again for TLS
	postTimeout  = 30 * time.Second // for a message that isn't waited for
	hangUpWait   = time.Second      // for telling a server that its session is over
	maxPosts     = 256              // messages that wait to be sent, beside requests
	maxRedirects = 3

	firstPause, lastPause = 2 * time.Second, time.Minute // between two streams of notifications
)

const (
	textJSON   = "application/json"
	textEvents = "text/event-stream"
)

// remote is a server at a URL, over Streamable HTTP or the older HTTP with server-sent events.
type remote struct {
	s           *session
	url         *url.URL
	ctx         context.Context // of what outlives a call; ended by hangUp
	cancel      context.CancelFunc
	base        *http.Transport
	client      *http.Client
	credentials *credentials
	posts       chan *jsonrpc.Message
	work        sync.WaitGroup

	// Of the goroutine that makes handshakes.
	sse      bool // the older transport
	switched bool // sse isn't what is configured

	mu   sync.Mutex
	conn connection
}

// connection is what was learned since the last handshake began.
type connection struct {
	sse      bool   // as in remote
	version  string // of the protocol; empty until it is agreed
	session  string // of Streamable HTTP
	endpoint string // of the older transport: where messages are posted to
	begun    bool   // a first request was answered

	streams context.Context // of those that stay open
	end     context.CancelFunc
}

func (c connection) modern() bool { return mcp.IsModernProtocol(c.version) }

// newRemote makes the connection's parts. It sends nothing.
func newRemote(s *session) (*remote, error) {
	u, err := url.Parse(s.server.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("its URL has neither http nor https; correct it in %s", origin(s.server))
	}
	r := &remote{
		s: s, url: u, base: newTransport(), posts: make(chan *jsonrpc.Message, maxPosts),
		sse: (s.server.Transport == discovery.SSE) != s.hints.other,
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if socket := s.server.Socket; socket != "" {
		dial := r.base.DialContext
		r.base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx, "unix", socket)
		}
	}
	r.credentials = newCredentials(s, u)
	r.client = &http.Client{Transport: r.base, CheckRedirect: r.redirect}
	return r, nil
}

// newTransport returns a connection pool of its own: sessions share nothing, and end what they have
// opened.
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
		// of each answer that isn't read yet
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: shortAnswer},
	}
}

// open drops what another handshake learned. Over the older transport it waits for the address that
// messages go to.
func (r *remote) open(ctx context.Context, modern bool) error {
	r.leave()
	now := connection{sse: r.sse}
	now.streams, now.end = context.WithCancel(r.ctx)
	if modern {
		now.version = mcp.LATEST_PROTOCOL_VERSION
	}
	r.mu.Lock()
	r.conn = now
	r.mu.Unlock()
	if r.sse {
		return r.openStream(ctx, now.streams)
	}
	return nil
}

// leave ends the connection of a handshake: it tells the server and closes the streams.
func (r *remote) leave() {
	now := r.now()
	if now.session != "" {
		ctx, cancel := context.WithTimeout(r.ctx, hangUpWait)
		defer cancel()
		if resp, err := r.do(ctx, http.MethodDelete, nil, r.describe(ctx, nil)); err == nil {
			_ = resp.Body.Close()
		}
	}
	if now.end != nil {
		now.end()
	}
}

// agreed notes the version to send with every request, and opens the older protocol's stream of
// notifications.
func (r *remote) agreed(version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn.version = version
	older := !r.conn.modern()
	r.s.changes.hear(older && r.conn.sse) // over the stream of all messages
	if older && !r.conn.sse {
		ctx := r.conn.streams
		r.work.Go(func() { r.listen(ctx) })
	}
}

// now returns what is known of the connection.
func (r *remote) now() connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

// instead changes to the other transport, once, where the server refused the configured one in the
// way that says so.
func (r *remote) instead(err error) bool {
	if r.switched || !isA[*otherTransportError](err) {
		return false
	}
	r.switched, r.sse = true, !r.sse
	return true
}

func (r *remote) modernFirst() bool { return !r.sse }

func (r *remote) serve() { r.work.Go(r.sendPosts) }

// Send implements jsonrpc.Carrier. All its errors are *exchangeError. A request over Streamable
// HTTP is answered when it returns nil.
func (r *remote) Send(ctx context.Context, m *jsonrpc.Message) error {
	if r.ctx.Err() != nil { // hung up
		return &exchangeError{r.ctx.Err()}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	x := exchange{r, m}
	if !x.isRequest() {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, postTimeout)
		defer stop()
	}
	err := x.post(ctx)
	if err == nil || isA[*exchangeError](err) {
		return err
	}
	return &exchangeError{err}
}

// Post implements jsonrpc.Carrier. A server that asks without end and doesn't take the answers is
// ended.
func (r *remote) Post(m *jsonrpc.Message) bool {
	select {
	case r.posts <- m:
	default:
		r.s.fail(&endError{why: "it asks more than it takes answers, and is left", again: "connects again"})
	}
	return true
}

// sendPosts sends them one after the other, so that a server that is slow costs one connection.
// What goes wrong is seen by those that it concerns, by the connection or by their own time.
func (r *remote) sendPosts() {
	for {
		select {
		case m := <-r.posts:
			ctx, cancel := context.WithTimeout(r.ctx, postTimeout)
			_ = r.Send(ctx, m)
			cancel()
		case <-r.ctx.Done():
			return
		}
	}
}

// describe returns the headers for a message.
func (r *remote) describe(ctx context.Context, m *jsonrpc.Message) http.Header {
	now, h := r.now(), http.Header{}
	if now.version != "" {
		h.Set(mcp.HeaderProtocolVersion, now.version)
	}
	if now.session != "" {
		h.Set(mcp.HeaderSessionID, now.session)
	}
	if !now.modern() || m == nil {
		return h
	}
	for name, value := range mcp.StandardHeaders(now.version, mcp.MCPMethod(m.Method), m.Params) {
		h.Set(name, value)
	}
	var tool struct{ Name string }
	if m.Method == string(mcp.MethodToolsCall) && json.Unmarshal(m.Params, &tool) == nil {
		if definition := r.s.tools.definition(ctx, tool.Name); definition != nil {
			for name, value := range mcp.GenerateParamHeaders(definition, m.Params) {
				h.Set(name, value)
			}
		}
	}
	return h
}

// do makes an HTTP request with the credentials, which go to the configured origin and nowhere
// else. One that was refused as unauthorized (401), which says that nothing was done, is sent once
// more where there are new ones.
func (r *remote) do(ctx context.Context, method string, body []byte, h http.Header) (*http.Response, error) {
	to := r.url.String()
	if endpoint := r.now().endpoint; endpoint != "" && method == http.MethodPost {
		to = endpoint
	}
	var refused *http.Response
	var used sent
	for {
		req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("its URL can't be used; correct it in %s", origin(r.s.server))
		}
		req.Header = h.Clone()
		next, err := r.credentials.apply(ctx, req, used)
		if err == nil && refused != nil && !next.newer(used) {
			return refused, nil
		}
		if refused != nil {
			_ = refused.Body.Close()
		}
		if err != nil {
			return nil, err
		}
		resp, err := r.client.Do(req)
		if err != nil {
			return nil, r.unanswered(ctx, err)
		}
		if refused != nil || resp.StatusCode != http.StatusUnauthorized {
			return resp, nil
		}
		refused, used = resp, next
	}
}

// unanswered returns why a request has no answer.
func (r *remote) unanswered(ctx context.Context, err error) error {
	if around, ok := errors.AsType[*url.Error](err); ok { // it has the URL in it
		err = around.Err
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isA[*exchangeError](err): // of redirect
		return err
	}
	return &unreachableError{r.s.mask.text(err.Error())}
}

// learn keeps what later messages need.
func (r *remote) learn(resp *http.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn.begun = true
	if id := resp.Header.Get(mcp.HeaderSessionID); id != "" && r.conn.session == "" {
		r.conn.session = id
	}
}

func (r *remote) noise([]byte) {}

func (r *remote) left() <-chan struct{} { return nil }

func (r *remote) autopsy(reason error) error { return reason }

func (r *remote) hangUp() {
	r.leave()
	r.cancel()
}

func (r *remote) end() error {
	r.work.Wait()
	r.base.CloseIdleConnections()
	return nil
}

func (r *remote) said() string { return "" }
