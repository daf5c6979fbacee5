//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestAnswersThatDoNotEnd: an answer whose body nobody wants isn't waited for, whether the server says how long it is or not.
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

// TestClosedTransport: what is told of a request whose transport was closed under it has nothing of the URL in it.
func TestClosedTransport(t *testing.T) {
	f := newFar(t)
	srv, _ := web(t, discovery.HTTP, "/mcp?api_key=s3cr3t-in-url&pin=s3cr3t", f)
	p := open(t, nil, srv)
	call(t, p, "plain", "")
	p.mu.Lock()
	for _, s := range p.sessions() {
		_ = s.tr.Close()
	}
	p.mu.Unlock()
	_, err := p.Call(t.Context(), "fake", "plain", nil)
	if e := serverError(t, err); !errors.Is(e, context.Canceled) || strings.Contains(e.Error(), "http://") {
		t.Errorf("got %v", e)
	}
}

// late is a transport whose caller's time ends as the last message of the handshake is sent.
type late struct {
	transport.Interface
	end    context.CancelFunc
	closed chan struct{}
}

func (l *late) Start(context.Context) error                                     { return nil }
func (l *late) SetNotificationHandler(func(mcp.JSONRPCNotification))            {}
func (l *late) SendNotification(context.Context, mcp.JSONRPCNotification) error { l.end(); return nil }
func (l *late) Close() error                                                    { close(l.closed); return nil }

func (l *late) SendRequest(_ context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	return transport.NewJSONRPCResultResponse(r.ID, json.RawMessage(
		`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"late","version":"1"}}`)), nil
}

type latePeer struct {
	peer
	tr *late
}

func (p latePeer) open(bool) (transport.Interface, error) { return p.tr, nil }

// TestHandshakeThatEndsLate: a session whose transport is closed for its being late isn't taken for one that has started.
func TestHandshakeThatEndsLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tr := &late{end: cancel, closed: make(chan struct{})}
	s := &session{mask: newMask(nil, nil), peer: latePeer{tr: tr}}
	if err := s.shake(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if s.tr != nil {
		t.Error("the closed transport was kept")
	}
	<-tr.closed
}
