//go:build unix

package upstream

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauth"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauthtest"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestConfiguredHeaders: headers, a token from a variable and what a program prints are sent; the
// headers of the protocol can't be replaced, and the bridge's environment doesn't reach the
// program.
func TestConfiguredHeaders(t *testing.T) {
	f := newFar(t)
	srv, _ := web(t, discovery.HTTP, "/", f)
	srv.Headers = map[string]string{"X-One": "1", "content-type": "text/plain", "Mcp-Session-Id": "x",
		"Host": "mcp.example"}
	srv.BearerTokenEnv = "TOKEN"
	srv.Env = map[string]string{"CLAUDE_PROJECT_DIR": "/w/x$(echo pwned)",
		"CLAUDE_CODE_MCP_SERVER_NAME": "other"}
	srv.HeadersHelper = `printf '{"X-Two":"%s","X-Env":"%s","X-Dir":"%s"}' "$CLAUDE_CODE_MCP_SERVER_NAME" ` +
		`"$TOKEN" "${CLAUDE_PROJECT_DIR}/tok"`
	g := &groups{}
	p := open(t, func(c *Config) {
		c.Guard = g
		c.Environ = []string{"PATH=" + os.Getenv("PATH"), "TOKEN=s3cr3t-value"}
	}, srv)
	call(t, p, "plain", "")
	f.mu.Lock()
	h := f.headers
	f.mu.Unlock()
	for name, want := range map[string]string{
		"X-One": "1", "X-Two": "fake", "X-Env": "", "X-Dir": "/w/x$(echo pwned)/tok",
		"Authorization": "Bearer s3cr3t-value", "Content-Type": "application/json", "Mcp-Session-Id": "",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if g.ever.Load() != 1 || g.now.Load() != 0 {
		t.Errorf("%d groups were started, %d are left", g.ever.Load(), g.now.Load())
	}
}

// TestHelperFails: a program that should print headers and doesn't is no secret's way out, and not
// waited for.
func TestHelperFails(t *testing.T) {
	f := newFar(t)
	for _, tt := range []struct{ name, helper, want string }{
		{"fails", "echo s3cr3t-value; echo s3cr3t-value >&2; exit 3", "exit status 3"},
		{"prints no JSON", "echo s3cr3t-value", "something else than a JSON object of strings"},
		{"prints numbers", `echo '{"X":1}'`, "something else"},
		{"prints without end", "yes s3cr3t-value", "more than 65536 bytes"},
		{"is not there", "/nowhere/helper", "exit status 127"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv, _ := web(t, discovery.HTTP, "/", f)
			srv.HeadersHelper = tt.helper
			_, err := open(t, nil, srv).Call(t.Context(), "fake", "plain", nil)
			serverError(t, err, "headersHelper", tt.want)
		})
	}
	srv, _ := web(t, discovery.HTTP, "/", f)
	srv.HeadersHelper = "sleep 1000 & sleep 1000"
	p := open(t, func(c *Config) { c.StartTimeout = 500 * time.Millisecond }, srv)
	_, err := p.Call(t.Context(), "fake", "plain", nil)
	serverError(t, err, "did not")
	if f.count("initialize") > 0 {
		t.Error("the server was asked without its headers")
	}
}

// TestHelperIsRefused: headers that are refused once they were printed again are said to be wrong.
func TestHelperIsRefused(t *testing.T) {
	srv, _ := web(t, discovery.HTTP, "/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	srv.HeadersHelper = `echo '{"Authorization":"Bearer s3cr3t-value"}'`
	_, err := open(t, nil, srv).Call(t.Context(), "fake", "plain", nil)
	serverError(t, err, "refused the authorization that its configuration gives")
}

// loggedIn is a real server behind an authorization server, and a source of tokens for it.
func loggedIn(t *testing.T) (*oauthtest.Server, discovery.Server, *oauth.Source, func(more ...string)) {
	t.Helper()
	as := oauthtest.New(t, mcpserver.NewStreamableHTTPServer(realServer(t), mcpserver.WithStateful(true)))
	srv := discovery.Server{Name: "fake", Transport: discovery.HTTP, URL: as.URL + oauthtest.Path}
	store := &oauth.Store{Dir: t.TempDir()}
	login := func(more ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g, err := oauth.NewClient().Login(ctx, oauth.Login{Server: srv, Scopes: more,
			Show: func(string, oauth.Parties) {}, Open: func(page string) {
				resp, err := http.Get(page)
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
				http.DefaultClient.CloseIdleConnections()
			}})
		if err == nil {
			_, err = store.Put(srv, g)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return as, srv, oauth.NewSource(store), login
}

// TestLoginOverHTTP: a server that wants a login says so, isn't waited for, and works after it; its
// tokens are renewed as they end, and when all is over the next step is named again.
func TestLoginOverHTTP(t *testing.T) {
	as, srv, source, login := loggedIn(t)
	p := open(t, func(c *Config) { c.Logins = source }, srv)
	says := func(want string) {
		t.Helper()
		_, err := p.Call(t.Context(), "fake", "echo", nil)
		serverError(t, err, want)
		for _, secret := range as.Secrets() {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%v holds a token", err)
			}
		}
	}
	says("type: mcp-bridge login fake")
	login()
	call(t, p, "echo", "{}")
	as.Expire()
	call(t, p, "echo", "{}")
	if n := as.Requests("refresh"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
	as.Set(func(tr *oauthtest.Traps) { tr.NeedScope = "admin" })
	says(`mcp-bridge login fake --scope admin`)
	login("admin") // though the token from before is still good
	call(t, p, "echo", "{}")
	as.Expire()
	as.Set(func(tr *oauthtest.Traps) { tr.NeedScope = "" })
	as.Set(func(tr *oauthtest.Traps) { tr.RefuseAll = true })
	says("type: mcp-bridge login fake") // also after a refresh that succeeded
	as.Set(func(tr *oauthtest.Traps) { tr.RefuseAll = false })
	as.Set(func(tr *oauthtest.Traps) { tr.Broken = true })
	as.Expire()
	says("renewing the login")
	as.Set(func(tr *oauthtest.Traps) { tr.Broken = false })
	call(t, p, "echo", "{}")
	as.Forget()
	says("type: mcp-bridge login fake")
}

// TestNewerProtocolOverHTTP: a server that knows the protocol without sessions is asked by it at
// once, and told in headers what it is asked for.
func TestNewerProtocolOverHTTP(t *testing.T) {
	f := newFar(t)
	f.newer = true
	older := counted(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"unsupported ` +
			`protocol version"}}`))
	}))
	srv, _ := web(t, discovery.HTTP, "/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Protocol-Version") != "2026-07-28" {
			older.ServeHTTP(w, r)
			return
		}
		f.ServeHTTP(w, r)
	}))
	p := open(t, nil, srv)
	for range 2 {
		tools, err := p.Tools(t.Context(), "fake")
		if err != nil || len(tools) != 3 || tools[0].Invalid != "" || tools[2].Invalid != "" ||
			tools[1].Invalid != `property "a": x-mcp-header value "Bad Header" contains invalid character ' '` {
			t.Fatalf("got %+v, %v", tools, err)
		}
		call(t, p, "plain", `{"region":"eu"}`)
		f.mu.Lock()
		h := f.headers
		f.mu.Unlock()
		if h.Get("Mcp-Method") != "tools/call" || h.Get("Mcp-Name") != "plain" ||
			h.Get("Mcp-Param-Region") != "eu" || h.Get("Mcp-Session-Id") != "" {
			t.Errorf("got %v", h)
		}
		p.mu.Lock()
		for _, s := range p.sessions() {
			s.fail(errSessionGone)
		}
		p.mu.Unlock()
	}
	if n := older.of("POST /"); n != 0 || f.count("server/discover") != 2 {
		t.Errorf("asked %d times by the older protocol and %d times by the newer, want 0 and 2", n,
			f.count("server/discover"))
	}
}

// TestHelperIsAskedOnceForAll: where the headers of many calls are refused at once, the program
// that prints them is run once.
func TestHelperIsAskedOnceForAll(t *testing.T) {
	const calls = 20
	f := newFar(t)
	dir := t.TempDir()
	token, runs := filepath.Join(dir, "token"), filepath.Join(dir, "runs")
	for file, text := range map[string]string{token: "old", runs: ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	good, refused, all := "Bearer old", 0, make(chan struct{})
	srv, _ := web(t, discovery.HTTP, "/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		right := r.Header.Get("Authorization") == good
		if r.Method == http.MethodPost && !right {
			if refused++; refused == calls {
				close(all)
			}
		}
		mu.Unlock()
		switch {
		case r.Method != http.MethodPost || right:
			f.ServeHTTP(w, r)
		default: // only once all have sent the old one
			select {
			case <-all:
			case <-f.stop:
			}
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	srv.HeadersHelper = `echo run >>` + runs + `; printf '{"Authorization":"Bearer %s"}' "$(cat ` + token + `)"`
	p := open(t, nil, srv)
	call(t, p, "plain", "")
	if err := os.WriteFile(token, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	good = "Bearer new"
	mu.Unlock()
	var group sync.WaitGroup
	for range calls {
		group.Go(func() {
			if _, err := p.Call(t.Context(), "fake", "plain", nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if text, err := os.ReadFile(runs); err != nil || string(text) != "run\nrun\n" {
		t.Errorf("it was run %d times, want 2 (%v)", strings.Count(string(text), "run"), err)
	}
}
