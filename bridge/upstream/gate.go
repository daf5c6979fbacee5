package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

const (
	acceptBoth = "application/json, text/event-stream"
	errorBody  = 16 << 10 // bytes read of an answer that is a failure
	errorText  = 300      // and shown

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
func (g *gate) begin(sse bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sse, g.endpoint, g.session, g.version, g.begun, g.pause = sse, "", "", "", false, 0
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

// originOf is scheme, host and port (RFC 6454).
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + port)
}

// redirect follows a redirection within the origin that keeps the method, and no other.
func (g *gate) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case originOf(req.URL) != originOf(g.url):
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

// RoundTrip sends a request and hands its answer to mcp-go the way that mcp-go can bear.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodDelete {
		return g.farewell(req)
	}
	resp, err := g.exchange(req)
	if err == nil || req.Context().Err() != nil {
		return resp, err
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
	if originOf(req.URL) != originOf(g.url) {
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
	login, err := g.credentials.apply(ctx, attempt, "")
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
	renewed, err := g.credentials.renew(ctx)
	if err == nil {
		var next string
		next, err = g.credentials.apply(ctx, again, login)
		renewed = renewed || next != login && next != ""
	}
	if err != nil {
		_ = closeWith(resp)
		return nil, err
	}
	if !renewed {
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
		return nil, fmt.Errorf("it can't be reached: %s", g.r.s.mask.text(err.Error()))
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

// whole is an answer of one JSON text.
func (g *gate) whole(resp *http.Response, a asked) (*http.Response, error) {
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, int64(g.r.s.cfg.MaxLine)+1))
	if err != nil {
		return nil, fmt.Errorf("the connection broke in the middle of its answer (%w); whether the work was done isn't known", err)
	}
	if len(raw) > g.r.s.cfg.MaxLine {
		return nil, fmt.Errorf("its answer is longer than %d bytes, which is the limit", g.r.s.cfg.MaxLine)
	}
	lines := g.r.s.in.digest(raw)
	if !answers(lines, a) {
		return nil, errors.New("its answer is none to what it was asked")
	}
	return g.events(resp, io.NopCloser(bytes.NewReader(asEvents(lines)))), nil
}

// answers says whether one of the lines for mcp-go is the answer that was asked for.
func answers(lines []byte, a asked) bool {
	for line := range bytes.Lines(lines) {
		var m message
		if json.Unmarshal(line, &m) == nil && m.Method == "" && bytes.Equal(m.ID, a.id) {
			return true
		}
	}
	return false
}

// stream is an answer of many messages, or the stream of notifications.
func (g *gate) stream(resp *http.Response, a asked) *http.Response {
	events := &eventReader{src: bufio.NewReaderSize(resp.Body, 64<<10), limit: g.r.s.cfg.MaxLine}
	standing, answered, resumable := g.isSSE(), false, false
	s := &sieve{body: resp.Body}
	s.next = func() ([]byte, error) {
		e, err := events.next()
		if err != nil {
			return nil, err
		}
		out := g.field(e)
		if e.hasID {
			resumable = true
		}
		switch {
		case len(e.data) == 0:
		case standing && e.name == "endpoint":
			return g.endpointEvent(out, e.data)
		case e.name == "" || e.name == "message":
			g.rewarded()
			lines := g.r.s.in.digest(e.data)
			if answered = answered || len(a.id) > 0 && answers(lines, a); answered {
				s.err = io.EOF // mcp-go waits for ever on a second answer
			}
			return append(out, asEvents(lines)...), s.err
		}
		return append(out, '\n'), nil
	}
	s.ending = func(err error) []byte {
		clean := errors.Is(err, io.EOF)
		switch {
		case standing && errors.Is(err, errTooLong):
			g.r.s.fail(lineTooLongError(g.r.s.cfg.MaxLine))
		case standing:
			g.r.s.fail(errStreamEnded)
		case len(a.id) == 0, answered, clean && resumable: // mcp-go asks for the rest of one that can be resumed
		case errors.Is(err, errTooLong):
			return g.lost(a, fmt.Errorf("its answer is longer than %d bytes, which is the limit", g.r.s.cfg.MaxLine))
		default:
			return g.lost(a, errors.New("the connection ended before the answer came; whether the work was done isn't known"))
		}
		return nil
	}
	return g.events(resp, s)
}

// field is what mcp-go needs of an event to resume its stream.
func (g *gate) field(e event) (out []byte) {
	if e.hasID {
		out = fmt.Appendf(out, "id: %s\n", e.id)
	}
	if e.retry != "" {
		wait, _ := time.ParseDuration(e.retry + "ms")
		out = fmt.Appendf(out, "retry: %d\n", max(wait, minRetry).Milliseconds())
	}
	return out
}

// rewarded forgets the pause: the stream was good for something.
func (g *gate) rewarded() {
	g.mu.Lock()
	g.pause = 0
	g.mu.Unlock()
}

// endpointEvent passes on where the older transport has messages posted to, if that is at the same origin.
func (g *gate) endpointEvent(out, data []byte) ([]byte, error) {
	to, err := g.url.Parse(strings.TrimSpace(string(data)))
	if err != nil || originOf(to) != originOf(g.url) {
		g.r.s.fail(errors.New("it names an address at another origin for messages, where nothing is sent to"))
		return nil, io.EOF
	}
	return fmt.Appendf(out, "event: endpoint\ndata: %s\n\n", to), nil
}

// lost fails the one request that waits for an answer.
func (g *gate) lost(a asked, err error) []byte {
	id := textOf(a.id)
	if lines := g.r.s.in.deliver(id, &answer{err: err}); lines != nil {
		return asEvents(lines)
	}
	// One of mcp-go's own.
	text, _ := json.Marshal(err.Error())
	return asEvents(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`+"\n", a.id, codeInternal, text))
}

// events is a response whose body mcp-go reads as a stream of events.
func (g *gate) events(resp *http.Response, body io.ReadCloser) *http.Response {
	resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
	resp.Header.Set("Content-Type", "text/event-stream")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Body = -1, body
	return resp
}

func empty(req *http.Request, status int) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req,
	}
}

// closeWith reads a little of a body, so that its connection can be used again, and closes it.
func closeWith(resp *http.Response) error {
	_, _ = io.CopyN(io.Discard, resp.Body, errorBody)
	return resp.Body.Close()
}

// printable is a server's text as it may be shown in one line.
func printable(s string) string {
	s = strings.Join(strings.Fields(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))), " ")
	return beginning(s, errorText)
}
