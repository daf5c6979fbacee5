//go:build unix

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestAnswersThatDoNotEnd: an answer whose body isn't wanted isn't waited for, whether the server
// says how long it is or not.
func TestAnswersThatDoNotEnd(t *testing.T) {
	for name, header := range map[string]http.Header{"no length": {}, "a length": {"Content-Length": {"7"}}} {
		t.Run(name, func(t *testing.T) {
			f := newFar(t)
			f.unended = header
			srv, _ := web(t, discovery.HTTP, "/", f)
			p := open(t, nil, srv)
			for range 2 {
				call(t, p, "plain", "")
			}
			if n := f.count("initialize"); n != 1 {
				t.Errorf("%d sessions, want 1", n)
			}
		})
	}
}

// TestClosedTransport: what is told of a request whose transport was closed under it has nothing of
// the URL in it.
func TestClosedTransport(t *testing.T) {
	f := newFar(t)
	srv, _ := web(t, discovery.HTTP, "/mcp?api_key=s3cr3t-in-url&pin=s3cr3t", f)
	p := open(t, nil, srv)
	call(t, p, "plain", "")
	p.mu.Lock()
	for _, s := range p.sessions() {
		s.peer.hangUp()
	}
	p.mu.Unlock()
	_, err := p.Call(t.Context(), "fake", "plain", nil)
	if e := serverError(t, err); !errors.Is(e, context.Canceled) || strings.Contains(e.Error(), "http://") {
		t.Errorf("got %v", e)
	}
}

// hand is a peer that answers as a function says.
type hand struct {
	peer
	send func(m *jsonrpc.Message) error
}

func (h hand) Send(_ context.Context, m *jsonrpc.Message) error { return h.send(m) }
func (hand) Post(*jsonrpc.Message) bool                         { return true }
func (hand) open(context.Context, bool) error                   { return nil }
func (hand) agreed(string)                                      {}
func (hand) left() <-chan struct{}                              { return make(chan struct{}) }

// TestHandshakeThatEndsLate: a caller's time that ends with the last message of the handshake has
// ended in it.
func TestHandshakeThatEndsLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newSession(Config{}.withDefaults(), discovery.Server{Name: "late"}, hints{})
	s.connectTo(hand{send: func(m *jsonrpc.Message) error {
		if m.ID == nil {
			cancel()
			return nil
		}
		s.conn.Receive(fmt.Appendf(nil,
			`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"late",`+
				`"version":"1"}}}`, m.ID))
		return nil
	}})
	defer s.conn.Close(ErrClosed)
	if err := (handshake{s}).shake(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
