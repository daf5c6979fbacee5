//go:build unix

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestAnswersOverHTTP: answers arrive as they were sent, in whatever way HTTP has for them.
func TestAnswersOverHTTP(t *testing.T) {
	f := newFar(t)
	srv, _ := web(t, discovery.HTTP, "/", f)
	p := open(t, nil, secretive(srv))
	for tool, want := range map[string]string{
		"plain": `{"n":9007199254740993,  "f":1.0}`, "events": `{"n":9007199254740993}`, "twice": `{"n":1}`,
		"progress": `{}`, "ping": `{}`, "lines": `{"n":1}`, "batch": `{}`, "resumed": `{"resumed":true}`,
	} {
		var seen []Progress
		ctx := WithProgress(t.Context(), func(pr Progress) { seen = append(seen, pr) })
		got, err := p.Call(ctx, "fake", tool, nil)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v", tool, got, err)
		}
		if (len(seen) == 1) != (tool == "progress") {
			t.Errorf("%s: progress %v", tool, seen)
		}
	}
	eventually(t, "the answer to the ping", func() bool { return f.heard(`"p-1"`) })
	_, err := p.Call(t.Context(), "fake", "error", nil)
	var refusal *RPCError
	if !errors.As(err, &refusal) || refusal.Code != -32050 || string(refusal.Data) != `{"n":9007199254740993}` ||
		refusal.Message != "bad ***" {
		t.Errorf("got %v", err)
	}
	if tools, err := p.Tools(t.Context(), "fake"); err != nil ||
		string(tools[0].InputSchema) != `{"n":9007199254740993}` {
		t.Errorf("got %v, %v", tools, err)
	}
}

// TestFailuresOverHTTP: what goes wrong with one call is told, bounded and without secrets, and is
// the end of nothing else.
func TestFailuresOverHTTP(t *testing.T) {
	f := newFar(t)
	srv, _ := web(t, discovery.HTTP, "/", f)
	p := open(t, func(c *Config) { c.MaxLine = 1 << 20 }, secretive(srv))
	for _, tt := range []struct{ tool, want string }{
		{"cut", "whether the work was done isn't known"},
		{"ended", "the connection ended before the answer came"},
		{"not resumed", "its rest can't be had (it answered 405 Method Not Allowed)"},
		{"huge", "longer than 1048576 bytes"},
		{"huge event", "longer than 1048576 bytes"},
		{"huge failure", "500 Internal Server Error: xxx"},
		{"failure", "502 Bad Gateway: [31mno upstream[0m for ***"},
		{"html", "text/html"},
		{"nothing", "it answered with nothing (status 202)"},
		{"other id", "isn't one to what it was asked"},
		{"no json", "isn't one to what it was asked"},
		{"scope", `mcp-bridge login fake --scope files:write`},
		{"forbidden", "403 Forbidden"},
		{"unauthorized", "mcp-bridge login fake"},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			_, err := p.Call(t.Context(), "fake", tt.tool, nil)
			serverError(t, err, tt.want)
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if n := f.count("tool " + tt.tool); n != 1 {
				t.Errorf("called %d times", n)
			}
		})
	}
	call(t, p, "plain", "")
	if n := f.count("initialize"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// TestCancelOverHTTP: a server is told of a call that isn't waited for any more.
func TestCancelOverHTTP(t *testing.T) {
	f, p := openFar(t)
	call(t, p, "plain", "")
	if _, err := p.Call(withTimeout(t, 30*time.Millisecond), "fake", "hang", nil); err == nil {
		t.Fatal("no error")
	}
	eventually(t, "the cancellation", func() bool { return f.heard("notifications/cancelled") })
}

// TestForgottenSession: a server that was restarted doesn't know its sessions. The call fails,
// isn't repeated, and the next one begins another session.
func TestForgottenSession(t *testing.T) {
	f := newFar(t)
	f.set("one")
	srv, _ := web(t, discovery.HTTP, "/", f)
	p := open(t, nil, srv)
	call(t, p, "plain", "")
	f.set("two")
	_, err := p.Call(t.Context(), "fake", "plain", nil)
	serverError(t, err, "no longer knows the session")
	if n := f.count("tool plain"); n != 2 {
		t.Errorf("called %d times, want 2", n)
	}
	call(t, p, "plain", "")
	if a, b := f.count("tool plain"), f.count("initialize"); a != 3 || b != 2 {
		t.Errorf("%d calls and %d sessions, want 3 and 2", a, b)
	}
}

// TestNothingGoesElsewhere: what is configured for an origin is sent to no other, however the
// server asks for it.
func TestNothingGoesElsewhere(t *testing.T) {
	var mu sync.Mutex
	var leaked []string
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		leaked = append(leaked, r.Method+" "+r.URL.Path)
	}))
	defer evil.Close()
	for _, tt := range []struct {
		name, want string
		transport  discovery.Transport
		h          http.HandlerFunc
	}{
		{"redirect to another origin", "it redirects to http://127.0.0.1:", discovery.HTTP,
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, evil.URL+"/mcp?key=s3cr3t-value", http.StatusTemporaryRedirect)
			}},
		{"redirect to another method", "would lose the message", discovery.HTTP,
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/other", http.StatusFound)
			}},
		{"redirect without end", "more than 3 times", discovery.HTTP, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusPermanentRedirect)
		}},
		{"endpoint at another origin", "another origin", discovery.SSE,
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", evil.URL)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}},
		{"endpoint at the same host and another scheme", "another origin", discovery.SSE,
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, "event: endpoint\ndata: https://%s/messages\n\n", r.Host)
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv, _ := web(t, tt.transport, "/mcp", tt.h)
			_, err := open(t, nil, secretive(srv)).Call(t.Context(), "fake", "plain", nil)
			serverError(t, err, tt.want)
		})
	}
	mu.Lock()
	defer mu.Unlock()
	if len(leaked) > 0 {
		t.Errorf("requests went elsewhere: %v", leaked)
	}
}

// TestRedirectWithinTheOrigin: what many servers do with a slash at the end.
func TestRedirectWithinTheOrigin(t *testing.T) {
	f := newFar(t)
	mux := http.NewServeMux()
	mux.Handle("/mcp/", f)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
	})
	srv, _ := web(t, discovery.HTTP, "/mcp", mux)
	p := open(t, nil, secretive(srv))
	call(t, p, "plain", "")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.headers.Get("X-Api-Key") != "s3cr3t-value" {
		t.Error("the configured header is lost")
	}
}

// TestStartsOverHTTP: servers that can't be connected to, and what is said of each.
func TestStartsOverHTTP(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	f := newFar(t)
	for _, tt := range []struct {
		name, want string
		change     func(*discovery.Server)
		h          http.HandlerFunc
	}{
		{"no server there", "connection refused", func(s *discovery.Server) { s.URL = gone.URL }, nil},
		{"no URL", "neither http nor https", func(s *discovery.Server) { s.URL = "ftp://x/" }, nil},
		{"slow headers", "did not answer within", nil, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body) // else it isn't seen that the client has gone
			<-r.Context().Done()
		}},
		{"neither transport", "404 Not Found", nil, http.NotFound},
		{"wrong authorization", "correct that in /home/u/servers.json",
			func(s *discovery.Server) { s.Headers = map[string]string{"authorization": "Bearer s3cr3t"} },
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }},
		{"no variable", "MISSING is not set", func(s *discovery.Server) { s.BearerTokenEnv = "MISSING" },
			f.ServeHTTP},
		{"not TLS", "can't be reached", func(s *discovery.Server) {
			s.URL = strings.Replace(s.URL, "http:", "https:", 1)
		}, f.ServeHTTP},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv, _ := web(t, discovery.HTTP, "/", tt.h)
			if tt.change != nil {
				tt.change(&srv)
			}
			p := open(t, func(c *Config) {
				if tt.name == "slow headers" {
					c.StartTimeout = time.Second
				}
			}, srv)
			_, err := p.Call(t.Context(), "fake", "plain", nil)
			serverError(t, err, tt.want)
		})
	}
}

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
