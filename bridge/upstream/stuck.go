package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// longSilence is how long requests that are waited for keep a server from being asked whether it
// still answers. It may be working on one of them, and do one thing at a time.
const longSilence = 2 * time.Minute

// A doubt records that a request to a server was given up, so that the server may be stuck in it.
// Many servers do one thing at a time: one that is stuck would keep each caller waiting for as long
// as that one has time. Its methods may be called concurrently.
type doubt struct {
	mu    sync.Mutex
	last  int64
	open  map[int64]context.Context // of the requests without an answer
	since time.Time                 // when one was given up, nothing being heard since; zero for none
	waits int                       // how many requests of the server's own aren't answered yet
	ask   chan struct{}             // closed once the server was asked; nil when it isn't being asked
}

// begin notes a request. What it returns notes its end, and whether the server was heard.
func (d *doubt) begin(ctx context.Context) (end func(heard bool)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	id := d.last
	d.open[id] = ctx
	return func(heard bool) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.look()
		delete(d.open, id)
		if heard {
			d.since = time.Time{}
		}
	}
}

// heard notes that the server has said something.
func (d *doubt) heard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since = time.Time{}
}

// question notes a request of the server's own: it may wait for the answer, and do nothing else.
// What it returns notes the answer.
func (d *doubt) question() (answered func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waits++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.waits--
		if !d.since.IsZero() {
			d.since = time.Now()
		}
	}
}

// look reports whether the server may be stuck and isn't waited for, or not any more. The caller
// has mu.
func (d *doubt) look() bool {
	waited := false
	for _, ctx := range d.open {
		if ctx.Err() == nil {
			waited = true
		} else if d.since.IsZero() {
			d.since = time.Now()
		}
	}
	return !d.since.IsZero() && d.waits == 0 && (!waited || time.Since(d.since) > longSilence)
}

// asked returns a channel that is closed once it is known whether a server answers that may be
// stuck: the session goes on, or is dying. It is nil where the server needn't be asked. Only that
// of a child is asked: its end ends what is stuck. The caller has p.mu.
func (p *Pool) asked(s *session) <-chan struct{} {
	d := &s.doubt
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ask == nil && s.server.Command != "" && d.look() {
		asked := make(chan struct{})
		d.ask = asked
		p.work.Go(func() {
			defer close(asked)
			s.askWhetherItAnswers()
		})
	}
	return d.ask
}

// askWhetherItAnswers ends the session if its server doesn't answer within PingTimeout, and no
// caller waits for it, or the callers have waited for longSilence.
func (s *session) askWhetherItAnswers() {
	method, params := mcp.MethodPing, map[string]any{}
	if s.meta != nil { // the newer protocol has none
		method = mcp.MethodServerDiscover
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.PingTimeout)
	defer cancel()
	id := s.conn.NewID()
	if meta := s.metaFor(ctx, id, false); meta != nil {
		params["_meta"] = meta
	}
	_, err := s.exchange(ctx, id, string(method), params)
	if s.doubt.settle(err == nil || ctx.Err() == nil) { // any answer is one
		s.cfg.Log.Warn("server is stuck", "server", s.server.Name, "stderr", s.peer.said())
		s.fail(over("it did not answer a ping for %v after a call was given up, and is ended", s.cfg.PingTimeout))
	}
}

// settle notes that the server was asked, and reports whether it is stuck.
func (d *doubt) settle(answered bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ask = nil
	if answered {
		d.since = time.Time{}
	}
	return !answered && d.look()
}
