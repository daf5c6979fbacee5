package upstream

import (
	"context"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	settle     = time.Second      // after a server has said that its tools changed, for it to say so again
	relistRest = 10 * time.Second // between two lists that nobody but the server's word has caused
	maxMasked  = 8 << 10          // bytes of what a server says of itself that are looked at
	maxTold    = 200              // bytes of what a server calls itself
)

// Running says whether a server has a connection that the next call would use, so that asking it starts nothing.
func (p *Pool) Running(ctx context.Context, server string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.find(ctx, server)
	return e != nil && !p.closed && e.live != nil && e.dial == nil && !e.live.isDying()
}

// called is what a server calls itself, with its version, as short text.
func called(about mcp.Implementation) string {
	return text.First(about.Name+" "+about.Version, maxTold)
}

// purpose returns the beginning of what a server says it is for: its instructions, else its description, title
// or name. Secrets are masked before it is cut, so that no part of one is left.
func purpose(r *mcp.InitializeResult, m *mask) string {
	about := r.ServerInfo
	for _, said := range []string{r.Instructions, about.Description, about.Title, about.Name} {
		if said = strings.TrimSpace(said); said != "" {
			return text.First(m.text(text.First(said, maxMasked)), maxTold)
		}
	}
	return ""
}

// listed tells of a list that the server has just given. The caller has the cache's turn: lists are told in their order.
func (s *session) listed(list []Tool) {
	if s.cfg.Listed != nil {
		s.cfg.Listed(s.server, s.version, s.purpose, list)
	}
}

// changed notes that the server's tools have changed. It doesn't block.
func (s *session) changed() {
	s.tools.stale.Add(1)
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// follow lists the tools anew when the server says that they changed, once they have been listed, until the session is dying. Who
// only keeps lists for later doesn't wait for the next caller. A burst of changes is one list.
func (s *session) follow() {
	for outlasts(s, s.news) {
		if !outlasts(s, time.After(settle)) {
			return
		}
		ctx, cancel := context.WithTimeout(ownWork(context.Background()), s.cfg.ListTimeout)
		if s.hasListed() {
			_, _ = s.listTools(ctx) // the next caller hears of an error; the end of the session ends it too
		}
		cancel()
		if !outlasts(s, time.After(relistRest)) {
			return
		}
	}
}

// hasListed says whether anybody has asked for the tools, without waiting for who asks just now.
func (s *session) hasListed() bool {
	select {
	case s.tools.turn <- struct{}{}:
		defer func() { <-s.tools.turn }()
		return s.tools.valid
	default:
		return true
	}
}

// outlasts waits for something, or for the end of the session: then it is false.
func outlasts[T any](s *session, c <-chan T) bool {
	select {
	case <-s.dying:
		return false
	case <-c:
		return true
	}
}
