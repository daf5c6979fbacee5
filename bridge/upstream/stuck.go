package upstream

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// A doubt is whether a server still answers, of which a request was given up. Many servers do one
// thing at a time: one that is stuck in a call answers no other, and would keep each caller waiting
// for as long as that one has time.
type doubt struct {
	mu    sync.Mutex
	there bool
	ask   chan struct{} // closed once the server was asked; nil when it isn't being asked
}

// set says whether there is a doubt.
func (d *doubt) set(there bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.there = there
}

// heard notes whether the server has answered a request, of which err came. Only a child's
// session is worth a doubt: its end ends what is stuck.
func (s *session) heard(ctx context.Context, err error) {
	switch {
	case err == nil, isA[*RPCError](err):
		s.answered.Store(true)
		s.doubt.set(false)
	case ctx.Err() != nil && s.server.Command != "":
		s.doubt.set(true)
	}
}

// asked returns a channel that is closed once it is known whether a server answers that is in
// doubt: the session goes on, or is dying. It is nil where there is no doubt, or where another
// caller still waits for an answer, which may be what keeps the server. The caller has p.mu.
func (p *Pool) asked(s *session) <-chan struct{} {
	d := &s.doubt
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ask == nil && d.there && !s.idle.inUse() {
		d.ask = make(chan struct{})
		p.work.Go(func() {
			s.askWhetherItAnswers()
			d.mu.Lock()
			defer d.mu.Unlock()
			close(d.ask)
			d.ask = nil
		})
	}
	return d.ask
}

// askWhetherItAnswers ends the session if its server doesn't answer within PingTimeout.
func (s *session) askWhetherItAnswers() {
	method := mcp.MethodPing
	if s.meta != nil { // the newer protocol has none
		method = mcp.MethodServerDiscover
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.PingTimeout)
	defer cancel()
	if _, err := s.request(ctx, string(method), map[string]any{}); ctx.Err() != nil && err != nil {
		s.fail(over("it has answered nothing for %v, not even a ping, after a call of it was given up, and is "+
			"ended", s.cfg.PingTimeout))
	}
}
