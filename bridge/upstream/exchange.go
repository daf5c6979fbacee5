package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	errorBody = 16 << 10 // bytes read of an answer that is a failure
	errorText = 300      // and shown
)

// An exchange is one message of ours over HTTP, and what is answered to it.
type exchange struct {
	r *remote
	m *jsonrpc.Message
}

// isRequest reports whether the message wants an answer.
func (x exchange) isRequest() bool { return x.m.Method != "" && x.m.ID != nil }

// waits reports whether the request still waits for its answer.
func (x exchange) waits() (waits bool) {
	x.r.s.conn.Waiting(x.m.ID, func() { waits = true })
	return waits
}

func (x exchange) tooLong() error {
	return fmt.Errorf("its answer is longer than %d bytes, which is the limit", x.r.s.cfg.MaxLine)
}

// post sends the message, and receives what is said in answer to it.
func (x exchange) post(ctx context.Context) error {
	h := x.r.describe(ctx, x.m)
	h.Set("Content-Type", textJSON)
	h.Set("Accept", textJSON+", "+textEvents)
	resp, err := x.r.do(ctx, http.MethodPost, x.m.Raw, h)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return x.refused(h, resp)
	}
	defer func() { _ = resp.Body.Close() }()
	x.r.learn(resp)
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case !x.isRequest() || x.r.now().sse: // the answer, if there is one, comes over the stream
		return nil
	case media == textEvents:
		return x.stream(ctx, resp.Body)
	case media == textJSON:
		return x.whole(ctx, resp.Body)
	}
	return fmt.Errorf("it answered with %s (status %d), which is no MCP; see whether its URL is right in %s",
		cmp.Or(media, "nothing"), resp.StatusCode, origin(x.r.s.server))
}

// whole receives an answer of one JSON text.
func (x exchange) whole(ctx context.Context, body io.Reader) error {
	in := &roomReader{s: x.r.s, ctx: ctx, body: body}
	defer in.release()
	raw, err := io.ReadAll(io.LimitReader(in, int64(x.r.s.cfg.MaxLine)+1))
	if errors.Is(err, errNoRoom) {
		return err
	}
	if err != nil {
		return fmt.Errorf("the connection broke in the middle of its answer (%w); whether the work was done "+
			"isn't known", err)
	}
	if len(raw) > x.r.s.cfg.MaxLine {
		return x.tooLong()
	}
	if x.r.s.conn.Receive(raw); x.waits() {
		return errors.New("its answer isn't one to what it was asked")
	}
	return nil
}

// stream receives an answer of many messages, up to the one that was asked for. Over the older
// protocol a server may end it before, once it has sent an event's id, and is asked for the rest.
func (x exchange) stream(ctx context.Context, body io.Reader) error {
	last, pause := "", defaultRetry
	for {
		in := &roomReader{s: x.r.s, ctx: ctx, body: body}
		err := x.r.receive(in, func(e event) bool {
			in.release()
			if e.hasID {
				last = e.id
			}
			if e.hasRetry {
				pause = max(e.retry, minRetry)
			}
			return !x.waits()
		})
		in.release()
		switch {
		case !x.waits():
			return nil
		case errors.Is(err, errNoRoom):
			return err
		case errors.Is(err, errTooLong):
			return x.tooLong()
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.Is(err, io.EOF) || last == "" || x.r.now().modern():
			return errors.New("the connection ended before the answer came; whether the work was done isn't known")
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		h := x.r.describe(ctx, nil)
		h.Set("Last-Event-ID", last)
		rest, err := x.r.get(ctx, h)
		if err != nil {
			return fmt.Errorf("the connection ended before the answer came, and its rest can't be had (%w); "+
				"whether the work was done isn't known", err)
		}
		defer func() { _ = rest.Close() }()
		body = rest
	}
}

// receive receives the messages of a stream until it ends, or done reports true for one of its
// events.
func (r *remote) receive(body io.Reader, done func(event) bool) error {
	events := newEventReader(body, r.s.cfg.MaxLine)
	for {
		e, err := events.next()
		if err != nil {
			return err
		}
		if e.isMessage() {
			r.s.conn.Receive(e.data)
		}
		if done(e) {
			return nil
		}
	}
}

// get opens a stream of events.
func (r *remote) get(ctx context.Context, h http.Header) (io.ReadCloser, error) {
	h.Set("Accept", textEvents)
	resp, err := r.do(ctx, http.MethodGet, nil, h)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode/100 != 2:
		return nil, &statusError{resp.StatusCode, exchange{r, &jsonrpc.Message{}}.refused(h, resp)}
	case media != textEvents:
		_ = resp.Body.Close()
		return nil, &otherTransportError{fmt.Errorf("it answered with %s and not with a stream of events",
			cmp.Or(media, "nothing"))}
	}
	return resp.Body, nil
}

// listen holds the stream of the older protocol's notifications open until ctx ends. It gives up
// when the server says that it has none, or wants a login.
func (r *remote) listen(ctx context.Context) {
	for pause := firstPause; ; pause = nextPause(pause) {
		body, err := r.get(ctx, r.describe(ctx, nil))
		switch {
		case err == nil:
			r.s.changes.hear(true)
			_ = r.receive(body, func(event) bool {
				pause = firstPause // the stream was good for something
				return false
			})
			r.s.changes.hear(false)
			_ = body.Close()
		case hasNoStream(err):
			return // then age is what there is
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// hasNoStream reports whether asking for a stream of notifications again would be no use.
func hasNoStream(err error) bool {
	if refusal, ok := errors.AsType[*statusError](err); ok {
		switch refusal.status {
		case http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed:
			return true
		}
	}
	return isA[*LoginError](err)
}

func nextPause(pause time.Duration) time.Duration { return min(2*pause, lastPause) }

// openStream opens the older transport's stream of all messages, which lives until streams ends,
// and waits for the event that tells where messages are posted to.
func (r *remote) openStream(ctx, streams context.Context) error {
	opening, cancel := context.WithCancel(streams)
	stop := context.AfterFunc(ctx, cancel)
	body, err := r.get(opening, r.describe(ctx, nil))
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &exchangeError{err}
	}
	endpoint := make(chan struct{})
	begun := sync.OnceFunc(func() { close(endpoint) })
	r.work.Go(func() {
		defer cancel()
		err := r.receive(body, func(e event) bool {
			if e.name != "endpoint" {
				return false
			}
			to, err := r.url.Parse(strings.TrimSpace(string(e.data)))
			if err != nil || discovery.OriginOf(to) != discovery.OriginOf(r.url) {
				r.s.fail(errElsewhere)
				return true
			}
			r.mu.Lock()
			r.conn.endpoint = to.String()
			r.mu.Unlock()
			begun()
			return false
		})
		_ = body.Close()
		switch {
		case opening.Err() != nil:
		case errors.Is(err, errTooLong):
			r.s.fail(lineTooLongError(r.s.cfg.MaxLine))
		default:
			r.s.fail(errStreamEnded)
		}
	})
	select {
	case <-endpoint:
		stop()
		return nil
	case <-opening.Done():
		return ctx.Err()
	case <-r.s.dying:
		return r.s.ended(ctx)
	}
}

// redirect follows a redirection within the origin that keeps the method, and no other.
func (r *remote) redirect(req *http.Request, via []*http.Request) error {
	switch {
	case discovery.OriginOf(req.URL) != discovery.OriginOf(r.url):
		return &exchangeError{fmt.Errorf("it redirects to %s, and what is configured for one origin is sent "+
			"to no other; if that is right, write its URL in %s",
			r.s.mask.text(req.URL.Scheme+"://"+req.URL.Host), origin(r.s.server))}
	case req.Method != via[0].Method:
		return &exchangeError{errors.New("it redirects in a way that would lose the message (a GET in place " +
			"of a POST)")}
	case len(via) > maxRedirects:
		return &exchangeError{fmt.Errorf("it redirects more than %d times", maxRedirects)}
	}
	return nil
}
