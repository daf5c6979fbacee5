//go:build unix

package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// far is a server over HTTP that misbehaves as its tools are called.
type far struct {
	t    *testing.T
	stop chan struct{} // ends what hangs

	mu       sync.Mutex
	session  string         // that it knows; empty: none, and it names none
	seen     map[string]int // by method, and by "tool NAME"
	headers  http.Header    // of the last POST
	messages []string       // all that came without being a request
	newer    bool           // it knows the newer protocol
	unended  http.Header    // of its answers to those, whose bodies it doesn't end; nil: it does
}

func newFar(t *testing.T) *far {
	f := &far{t: t, stop: make(chan struct{}), seen: map[string]int{}}
	t.Cleanup(func() { close(f.stop) })
	return f
}

func (f *far) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[what]
}

func (f *far) set(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.session = session
}

func (f *far) heard(part string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Contains(strings.Join(f.messages, "\n"), part)
}

func (f *far) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if last := r.Header.Get("Last-Event-ID"); r.Method == http.MethodGet && strings.HasPrefix(last, "answer ") {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resumed\":true}}\n\n", strings.TrimPrefix(last, "answer "))
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var m request
	_ = json.Unmarshal(body, &m)
	f.mu.Lock()
	f.seen[m.Method]++
	if m.Params.Name != "" {
		f.seen["tool "+m.Params.Name]++
	}
	if len(m.ID) == 0 || m.Method == "" {
		f.messages = append(f.messages, string(body))
	}
	f.headers = r.Header.Clone()
	session := f.session
	f.mu.Unlock()
	switch {
	case session != "" && m.Method != "initialize" && r.Header.Get("Mcp-Session-Id") != session:
		w.WriteHeader(http.StatusNotFound)
	case m.Method == "initialize":
		if session != "" {
			w.Header().Set("Mcp-Session-Id", session)
		}
		f.json(w, m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`)
	case len(m.ID) == 0 || m.Method == "":
		maps.Copy(w.Header(), f.unended)
		w.WriteHeader(http.StatusAccepted)
		if f.unended != nil {
			_ = http.NewResponseController(w).Flush()
			f.hang(r)
		}
	case m.Method == "server/discover" && !f.newer:
		w.WriteHeader(http.StatusBadRequest)
	case m.Method == "server/discover":
		f.json(w, m, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"far","version":"1"}}}`)
	case m.Method == "tools/list":
		bad := ""
		if f.newer {
			bad = `{"name":"bad header","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Bad Header"}}}},`
		}
		f.json(w, m, `{"tools":[{"name":"a","inputSchema":{"n":9007199254740993}},`+bad+`{"name":"plain","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`)
	default:
		f.tool(w, r, m)
	}
}

func (f *far) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-f.stop:
	}
}

func (f *far) json(w http.ResponseWriter, m request, result string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// flood writes until nobody reads.
func flood(w http.ResponseWriter) {
	for junk := strings.Repeat("x", 1<<16); ; {
		if _, err := io.WriteString(w, junk); err != nil {
			return
		}
	}
}

func (f *far) tool(w http.ResponseWriter, r *http.Request, m request) {
	events := func(format string, args ...any) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, format, args...)
		_ = http.NewResponseController(w).Flush()
	}
	answer := func(result string) string {
		return fmt.Sprintf("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":%s}\n\n", m.ID, result)
	}
	switch m.Params.Name {
	case "plain":
		f.json(w, m, `{"n":9007199254740993,  "f":1.0}`)
	case "events":
		events(": comment\r\nid: 1\r\nretry: 1\r\ndata:\r\n\r\n%s", answer(`{"n":9007199254740993}`))
	case "twice":
		events("%s%s", answer(`{"n":1}`), answer(`{"n":2}`))
	case "progress":
		var meta struct {
			Token json.RawMessage `json:"progressToken"`
		}
		_ = json.Unmarshal(m.Params.Meta, &meta)
		events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":1}}\n\n%s", meta.Token, answer(`{}`))
	case "ping":
		events("data: {\"jsonrpc\":\"2.0\",\"id\":\"p-1\",\"method\":\"ping\"}\n\n%s", answer(`{}`))
	case "error":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32050,"message":"bad s3cr3t-value","data":{"n":9007199254740993}}}`)
	case "cut":
		events("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"resu", m.ID)
		panic(http.ErrAbortHandler)
	case "resumed":
		events("id: answer %s\nretry: 1\ndata:\n\n", m.ID)
	case "not resumed":
		events("id: 1\nretry: 1\ndata:\n\n")
	case "ended":
		events(": nothing\n\n")
	case "huge":
		w.Header().Set("Content-Type", "application/json")
		flood(w)
	case "huge event":
		events("data: ")
		flood(w)
	case "huge failure":
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusInternalServerError)
		flood(w)
	case "failure":
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "\x1b[31mno upstream\x1b[0m for\ns3cr3t-value")
	case "html":
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<p>log in</p>")
	case "nothing":
		w.WriteHeader(http.StatusAccepted)
	case "other id":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"b-999","result":{}}`)
	case "no json":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":`)
	case "hang":
		f.hang(r)
	case "scope":
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="files:write", realm="x"`)
		w.WriteHeader(http.StatusForbidden)
	case "forbidden":
		w.WriteHeader(http.StatusForbidden)
	case "unauthorized":
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// secretive is srv with a secret that the server knows too.
func secretive(srv discovery.Server) discovery.Server {
	srv.Headers = map[string]string{"X-Api-Key": "s3cr3t-value"}
	return srv
}

// TestAnswersOverHTTP: answers arrive as they were sent, in whatever way HTTP has for them.
func TestAnswersOverHTTP(t *testing.T) {
	f := newFar(t)
	srv, _ := web(t, discovery.HTTP, "/", f)
	p := open(t, nil, secretive(srv))
	for tool, want := range map[string]string{
		"plain": `{"n":9007199254740993,  "f":1.0}`, "events": `{"n":9007199254740993}`, "twice": `{"n":1}`, "progress": `{}`, "ping": `{}`, "resumed": `{"resumed":true}`,
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
	if !errors.As(err, &refusal) || refusal.Code != -32050 || string(refusal.Data) != `{"n":9007199254740993}` || refusal.Message != "bad ***" {
		t.Errorf("got %v", err)
	}
	if tools, err := p.Tools(t.Context(), "fake"); err != nil || string(tools[0].InputSchema) != `{"n":9007199254740993}` {
		t.Errorf("got %v, %v", tools, err)
	}
}

// TestFailuresOverHTTP: what goes wrong with one call is told, bounded and without secrets, and is the end of nothing else.
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

// TestCancelOverHTTP: a server is told of a call that nobody waits for any more.
func TestCancelOverHTTP(t *testing.T) {
	f := newFar(t)
	srv, _ := web(t, discovery.HTTP, "/", f)
	p := open(t, nil, srv)
	call(t, p, "plain", "")
	if _, err := p.Call(withTimeout(t, 30*time.Millisecond), "fake", "hang", nil); err == nil {
		t.Fatal("no error")
	}
	eventually(t, "the cancellation", func() bool { return f.heard("notifications/cancelled") })
}

// TestForgottenSession: a server that was restarted doesn't know its sessions. The call fails, isn't repeated, and the next one begins
// another session.
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

// TestNothingGoesElsewhere: what is configured for an origin is sent to no other, however the server asks for it.
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
		{"redirect to another origin", "it redirects to http://127.0.0.1:", discovery.HTTP, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, evil.URL+"/mcp?key=s3cr3t-value", http.StatusTemporaryRedirect)
		}},
		{"redirect to another method", "would lose the message", discovery.HTTP, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusFound)
		}},
		{"redirect without end", "more than 3 times", discovery.HTTP, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusPermanentRedirect)
		}},
		{"endpoint at another origin", "another origin", discovery.SSE, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", evil.URL)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		{"endpoint at the same host and another scheme", "another origin", discovery.SSE, func(w http.ResponseWriter, r *http.Request) {
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
		{"nobody there", "connection refused", func(s *discovery.Server) { s.URL = gone.URL }, nil},
		{"no URL", "neither http nor https", func(s *discovery.Server) { s.URL = "ftp://x/" }, nil},
		{"slow headers", "did not answer within", nil, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body) // else nobody sees that the client has gone
			<-r.Context().Done()
		}},
		{"neither transport", "404 Not Found", nil, http.NotFound},
		{"wrong authorization", "correct that in /home/u/servers.json", func(s *discovery.Server) { s.Headers = map[string]string{"authorization": "Bearer s3cr3t"} },
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }},
		{"no variable", "MISSING is not set", func(s *discovery.Server) { s.BearerTokenEnv = "MISSING" }, f.ServeHTTP},
		{"not TLS", "can't be reached", func(s *discovery.Server) { s.URL = strings.Replace(s.URL, "http:", "https:", 1) }, f.ServeHTTP},
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
