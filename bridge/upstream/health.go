package upstream

import (
	"context"
	"time"
)

// Health is how a server is, as far as starting it and listing its tools tells.
type Health struct {
	Start time.Duration // until the connection was made; 0 where it was there already
	List  time.Duration // until its tools were listed
	Tools int
	Err   error // why it can't be used; what Tools returns

	Stderr, Logged string // the last that it said, as in ServerError, also where nothing is wrong
}

// Check starts a server if need be and lists its tools. It returns soon after ctx ends. It may be called concurrently.
func (p *Pool) Check(ctx context.Context, server string) (h Health) {
	ctx, unpin := p.Pin(ctx)
	defer unpin()
	began := time.Now()
	s, err := p.session(ctx, server)
	if err != nil {
		h.Err = err
		return h
	}
	h.Start = time.Since(began)
	began = time.Now()
	tools, err := p.Tools(ctx, server)
	h.Err, h.Tools, h.List = err, len(tools), time.Since(began)
	h.Stderr, h.Logged = s.peer.said(), s.journal.tail()
	return h
}
