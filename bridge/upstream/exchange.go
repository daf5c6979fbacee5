package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	acceptBoth   = "application/json, text/event-stream"
	errorBody    = 16 << 10               // bytes read of an answer that is a failure
	errorText    = 300                    // and shown
	unwantedWait = 100 * time.Millisecond // for a body that nobody wants

	firstPause, lastPause = 2 * time.Second, time.Minute // between two streams of notifications
)

// gate is what every HTTP request of a session passes, and every answer. It holds that
//   - the configured headers and a login's token go to the configured origin and nowhere else, whatever the server says;
//   - a message is at most MaxLine bytes long, and a failure's text a few;
//   - messages come to the inbox as they would from a pipe, and mcp-go sees of them what it can bear;
//   - what goes wrong is told in our words (*exchangeError).
//
// RoundTrip may be called concurrently.
type gate struct {
	r           *remote
	url         *url.URL
	credentials *credentials

	mu       sync.Mutex
	sse      bool   // the older transport
	modern   bool   // the newer protocol
	endpoint string // of the older transport: where messages are posted to
	session  string // of Streamable HTTP
	version  string
	begun    bool          // a first request was answered
	pause    time.Duration // before the next stream of notifications
}

func newGate(r *remote, u *url.URL) *gate {
	return &gate{r: r, url: u, credentials: newCredentials(r.s, u)}
}

// begin forgets what was learned by another handshake.
func (g *gate) begin(sse, modern bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sse, g.modern, g.endpoint, g.session, g.version, g.begun, g.pause = sse, modern, "", "", "", false, 0
}

// address is where a message that mcp-go doesn't send goes to, and with which headers.
func (g *gate) address() (string, http.Header) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := http.Header{}
	if g.version != "" {
		h.Set(transport.HeaderKeyProtocolVersion, g.version)
	}
	if g.session != "" {
		h.Set(transport.HeaderKeySessionID, g.session)
	}
	if g.endpoint != "" {
		return g.endpoint, h
	}
	return g.url.String(), h
}

// redirect follows a redirection within the origin that keeps the method, and no other.
func (g *gate) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case discovery.OriginOf(req.URL) != discovery.OriginOf(g.url):
		return &exchangeError{fmt.Errorf("it redirects to %s, and what is configured for one origin is sent to no other; if that is right, write its URL in %s",
			g.r.s.mask.text(req.URL.Scheme+"://"+req.URL.Host), origin(g.r.s.server))}
	case req.Method != via[0].Method:
		return &exchangeError{errors.New("it redirects in a way that would lose the message (a GET in place of a POST)")}
	case len(via) > maxRedirects:
		return &exchangeError{fmt.Errorf("it redirects more than %d times", maxRedirects)}
	}
	return nil
}

// asked is the request that an HTTP request carries.
type asked struct {
	id     json.RawMessage // empty for a notification, an answer, and a GET
	method string
}

func askedBy(req *http.Request) (a asked) {
	if req.GetBody == nil {
		return a
	}
	body, err := req.GetBody()
	if err != nil {
		return a
	}
	defer func() { _ = body.Close() }()
	var m message
	if json.NewDecoder(body).Decode(&m) == nil && m.Method != "" {
		a.id, a.method = m.ID, m.Method
	}
	return a
}

// RoundTrip sends a request and hands its answer to mcp-go the way that mcp-go can bear. All its errors are *exchangeError, those of
// the context too: net/http and mcp-go put the URL before them.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodDelete {
		return g.farewell(req)
	}
	resp, err := g.exchange(req)
	if err == nil {
		return resp, nil
	}
	var known *exchangeError
	if errors.As(err, &known) {
		return nil, err
	}
	return nil, &exchangeError{err}
}

// farewell tells the server that the session is over; mcp-go would wait for five seconds.
func (g *gate) farewell(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), hangUpWait)
	defer cancel()
	if resp, err := g.send(req.WithContext(ctx)); err == nil {
		_ = resp.Body.Close()
	}
	return empty(req, http.StatusOK), nil
}

func (g *gate) exchange(req *http.Request) (*http.Response, error) {
	if discovery.OriginOf(req.URL) != discovery.OriginOf(g.url) {
		return nil, errors.New("it names an address at another origin, where nothing is sent to")
	}
	if req.Method == http.MethodGet && !g.isSSE() && req.Header.Get(mcp.HeaderLastEventID) == "" {
		if err := g.pauseBefore(req.Context()); err != nil {
			return nil, err
		}
	}
	resp, err := g.send(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return g.accept(req, resp)
	}
	if resp.StatusCode/100 == 3 && resp.Header.Get("Location") != "" {
		return resp, closeWith(resp) // for redirect to judge
	}
	return g.refuse(req, resp)
}

func (g *gate) isSSE() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sse
}

// isModern says whether the newer protocol is spoken, which resumes no stream.
func (g *gate) isModern() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.modern
}

// pauseBefore keeps apart the streams of notifications of a server that ends each one.
func (g *gate) pauseBefore(ctx context.Context) error {
	g.mu.Lock()
	pause := g.pause
	g.pause = nextPause(pause)
	g.mu.Unlock()
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func nextPause(pause time.Duration) time.Duration { return min(max(2*pause, firstPause), lastPause) }

// send sends a request with the credentials. One that was refused for want of authorization is sent once more if there is a new
// one: a refusal (401) says that nothing was done.
func (g *gate) send(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	attempt := req.Clone(ctx)
	used, err := g.credentials.apply(ctx, attempt, sent{})
	if err != nil {
		return nil, err
	}
	resp, err := g.transmit(attempt)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
		return resp, err
	}
	again := req.Clone(ctx)
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return resp, nil
		}
	}
	next, err := g.credentials.apply(ctx, again, used)
	if err != nil {
		_ = closeWith(resp)
		return nil, err
	}
	if next.helped == used.helped && (next.login == used.login || next.login == "") {
		return resp, nil
	}
	_ = closeWith(resp)
	return g.transmit(again)
}

func (g *gate) transmit(req *http.Request) (*http.Response, error) {
	resp, err := g.r.base.RoundTrip(req)
	if err != nil {
		if req.Context().Err() != nil {
			return nil, req.Context().Err()
		}
		return nil, &unreachableError{g.r.s.mask.text(err.Error())}
	}
	return resp, nil
}

// accept is an answer of success.
func (g *gate) accept(req *http.Request, resp *http.Response) (*http.Response, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	a := askedBy(req)
	g.learn(req, resp)
	switch {
	case req.Method == http.MethodGet && media == "text/event-stream":
		return g.stream(resp, a), nil
	case req.Method == http.MethodGet && g.isSSE():
		_ = closeWith(resp)
		return nil, &otherTransportError{fmt.Errorf("it answered with %s and not with a stream of events", contentType(media))}
	case req.Method == http.MethodGet: // it has no notifications to tell
		_ = closeWith(resp)
		return empty(req, http.StatusMethodNotAllowed), nil
	case len(a.id) == 0 || g.isSSE(): // the answer, if there is one, comes over the stream
		_ = closeWith(resp)
		return empty(req, http.StatusAccepted), nil
	case media == "text/event-stream":
		return g.stream(resp, a), nil
	case media == "application/json":
		return g.whole(resp, a)
	}
	_ = closeWith(resp)
	return nil, fmt.Errorf("it answered with %s (status %d), which is no MCP; see whether its URL is right in %s", contentType(media), resp.StatusCode, origin(g.r.s.server))
}

func contentType(media string) string {
	if media == "" {
		return "nothing"
	}
	return media
}

// learn keeps what messages beside mcp-go's need.
func (g *gate) learn(req *http.Request, resp *http.Response) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun = true
	if v := req.Header.Get(transport.HeaderKeyProtocolVersion); v != "" {
		g.version = v
	}
	if id := resp.Header.Get(transport.HeaderKeySessionID); id != "" && g.session == "" {
		g.session = id
	}
	if g.sse && req.Method == http.MethodPost {
		g.endpoint = req.URL.String()
	}
}

func empty(req *http.Request, status int) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req,
	}
}

// closeWith closes a body that nobody wants. A short one is read first, so that its connection can be used again, but not waited for:
// the server may never end it.
func closeWith(resp *http.Response) error {
	if 0 < resp.ContentLength && resp.ContentLength <= errorBody {
		late := time.AfterFunc(unwantedWait, func() { _ = resp.Body.Close() })
		defer late.Stop()
		_, _ = io.CopyN(io.Discard, resp.Body, errorBody)
	}
	return resp.Body.Close()
}
