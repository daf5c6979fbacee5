package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

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
	standing, modern, answered, resumable := g.isSSE(), g.isModern(), false, false
	s := &sieve{body: resp.Body}
	s.next = func() ([]byte, error) {
		e, err := events.next()
		if err != nil {
			return nil, err
		}
		out := g.field(e)
		if e.hasID {
			resumable = !modern
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
	if err != nil || discovery.OriginOf(to) != discovery.OriginOf(g.url) {
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
