package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauthtest"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// protected is an authorization server in front of one that says hello.
func protected(t *testing.T, traps oauthtest.Traps) (*oauthtest.Server, discovery.Server) {
	t.Helper()
	s := oauthtest.New(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	s.Set(func(tr *oauthtest.Traps) { *tr = traps })
	return s, discovery.Server{Name: "far", Transport: discovery.HTTP, URL: s.URL + oauthtest.Path}
}

// browse is a browser whose user agrees to everything.
func browse(t *testing.T) func(string) {
	return func(page string) {
		resp, err := http.Get(page)
		if err != nil {
			t.Errorf("the browser: %v", err)
			return
		}
		_ = resp.Body.Close()
	}
}

func login(t *testing.T, srv discovery.Server, more ...string) (Grant, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return NewClient().Login(ctx, Login{Server: srv, Scopes: more, Show: func(string, Parties) {},
		Open: browse(t)})
}

// TestLogin: a token is given, and is good, with every kind of server that is right in its own way.
func TestLogin(t *testing.T) {
	for name, traps := range map[string]oauthtest.Traps{
		"":                             {},
		"without resource metadata":    {NoResourceMetadata: true},
		"OpenID Connect":               {OpenIDOnly: true},
		"clients with a secret":        {Secret: true},
		"metadata at a foreign origin": {MetadataElsewhere: "https://evil.example/metadata"},
		"lower case bearer":            {TokenType: "bearer"},
	} {
		t.Run(name, func(t *testing.T) {
			s, srv := protected(t, traps)
			g, err := login(t, srv)
			if err != nil {
				t.Fatal(err)
			}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
			req.Header.Set("Authorization", "Bearer "+g.AccessToken)
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("the token is no good: %v %v", resp.Status, err)
			}
			_ = resp.Body.Close()
			if g.RefreshToken == "" || g.Issuer != s.URL {
				t.Errorf("got %+v", g)
			}
			if strings.Contains(g.String(), g.AccessToken) {
				t.Error("String tells the token")
			}
		})
	}
}

// TestExpiry: a login works however a server says when its token ends (RFC 6749, 5.1), and ends
// then.
func TestExpiry(t *testing.T) {
	for _, tt := range []struct {
		says any
		want time.Duration // until it ends; 0 for no end
	}{
		{3600, time.Hour}, {1800.5, 30 * time.Minute}, {"1800", 30 * time.Minute}, {"1799.99", 1799 * time.Second},
		{1e300, math.MaxInt32 * time.Second}, {"soon", 0}, {-5, 0}, {"NaN", 0}, {true, 0},
		{map[string]int{"a": 1}, 0},
	} {
		t.Run(fmt.Sprint(tt.says), func(t *testing.T) {
			_, srv := protected(t, oauthtest.Traps{ExpiresIn: tt.says})
			began := time.Now()
			g, err := login(t, srv)
			if err != nil {
				t.Fatal(err)
			}
			// Expires is cut to whole seconds.
			earliest, latest := began.Add(tt.want-time.Second), time.Now().Add(tt.want)
			if tt.want == 0 != g.Expires.IsZero() || tt.want > 0 &&
				(g.Expires.Before(earliest) || g.Expires.After(latest)) {
				t.Errorf("it ends at %v, want %v from now on", g.Expires, tt.want)
			}
		})
	}
}

// TestLoginRefused: what a login must not believe, and what it says then. No error holds a token.
func TestLoginRefused(t *testing.T) {
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			t.Error("a code went to another origin")
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer evil.Close()
	for _, tt := range []struct {
		name  string
		traps oauthtest.Traps
		want  string
	}{
		{"metadata of another issuer", oauthtest.Traps{Issuer: "https://evil.example"}, "another issuer"},
		{"metadata for another resource", oauthtest.Traps{Resource: "https://evil.example/mcp"},
			"another resource"},
		{"no PKCE", oauthtest.Traps{NoPKCE: true}, "PKCE"},
		{"mix-up", oauthtest.Traps{Iss: "https://evil.example"}, "another authorization server"},
		{"no issuer in the answer", oauthtest.Traps{NoIss: true}, "another authorization server"},
		{"the user refuses", oauthtest.Traps{Deny: true}, "access_denied): not today"},
		{"no registration", oauthtest.Traps{NoRegistration: true}, "clientId"},
		{"registration refused", oauthtest.Traps{RefuseRegistration: true}, "no strangers"},
		{"token of another type", oauthtest.Traps{TokenType: "DPoP"}, "Bearer"},
		{"token endpoint without end", oauthtest.Traps{Huge: true}, "longer than"},
		{"token endpoint broken", oauthtest.Traps{Broken: true}, "503"},
		{"token endpoint elsewhere by a redirection", oauthtest.Traps{Redirect: evil.URL + "/token"}, "307"},
		{"token endpoint without TLS", oauthtest.Traps{TokenEndpoint: "http://evil.example/token"}, "not of https"},
		{"token endpoint that is no URL", oauthtest.Traps{TokenEndpoint: "javascript:alert(1)"},
			"no plain absolute URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, srv := protected(t, tt.traps)
			g, err := login(t, srv)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			for _, secret := range append(s.Secrets(), g.ClientSecret) {
				if secret != "" && strings.Contains(err.Error(), secret) {
					t.Errorf("%v holds a secret", err)
				}
			}
		})
	}
}

// TestLoginInTheClear: no login is made at a server where others could read the token on its way;
// it isn't even asked.
func TestLoginInTheClear(t *testing.T) {
	_, err := login(t, discovery.Server{Name: "far", URL: "http://mcp.invalid/mcp",
		Source: discovery.Source{Path: "/home/u/servers.json"}})
	if err == nil || !strings.Contains(err.Error(), "write its https address in /home/u/servers.json") {
		t.Errorf("got %v", err)
	}
}

// TestEndpoints: a server elsewhere can't have us reach into this machine, or send anything in the
// clear.
func TestEndpoints(t *testing.T) {
	far, _ := url.Parse("https://mcp.example/mcp")
	near, _ := url.Parse("http://127.0.0.1:8080/mcp")
	for raw, want := range map[string][2]bool{ // for far, for near
		"https://auth.example/token":      {true, true},
		"http://auth.example/token":       {false, false},
		"http://127.0.0.1/token":          {false, true},
		"https://localhost/token":         {false, true},
		"https://[::1]/token":             {false, true},
		"https://u:p@auth.example/token":  {false, false},
		"https://auth.example/token#part": {false, false},
		"file:///etc/passwd":              {false, false},
		"/token":                          {false, false},
		"https://LOCALHOST/token":         {false, true},
		"https://localhost./token":        {false, true},
		"https://a.localhost/token":       {false, true},
		"http://a.localhost/token":        {false, false},
		"https://0.0.0.0/token":           {false, true},
		"https://[::]/token":              {false, true},
		"https://[::ffff:127.0.0.1]/x":    {false, true},
		"https://127.1/token":             {false, true},
		"https://0x7f000001/token":        {false, true},
		"https://169.254.169.254/token":   {false, true},
		"https://[fe80::1%25eth0]/token":  {false, true},
		"https://10.1.2.3/token":          {true, true},
		"https://auth.example1/token":     {true, true},
	} {
		for i, server := range []*url.URL{far, near} {
			if _, err := endpoint(raw, server); (err == nil) != want[i] {
				t.Errorf("%s for %s: %v", raw, server, err)
			}
		}
	}
}

// TestNamesThatLeadHere: what a server elsewhere names isn't asked where its name leads to this
// machine, in a login or later.
func TestNamesThatLeadHere(t *testing.T) {
	var asked atomic.Int32
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer here.Close()
	c := NewClient()
	far, _ := url.Parse("https://mcp.example/mcp")
	near, _ := url.Parse("http://localhost:1/mcp")
	var into struct{}
	_, getting := c.get(t.Context(), here.URL, far, &into)
	g := Grant{URL: far.String(), Token: here.URL, Revoke: here.URL, RefreshToken: "s3cr3t"}
	registering := c.register(t.Context(), &authority{server: far,
		serverMetadata: serverMetadata{Register: here.URL}}, &Grant{}, "http://127.0.0.1/callback")
	for _, err := range []error{getting, registering, c.refresh(t.Context(), &g), c.revoke(t.Context(), g)} {
		if !errors.Is(err, errNear) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("got %v", err)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests came here", n)
	}
	if _, err := c.get(t.Context(), here.URL, near, &into); err != nil || asked.Load() != 1 {
		t.Errorf("for a server here: %v", err)
	}
	own, _ := http.NewRequest(http.MethodGet, "https://MCP.example:8443/token", nil)
	if (&guarded{c, far}).mustBeFar(own) {
		t.Error("the server's own host, which may be the end of a tunnel, is held to be elsewhere")
	}
}

func TestCovers(t *testing.T) {
	server, _ := url.Parse("https://mcp.example/a/b")
	for resource, want := range map[string]bool{
		"https://mcp.example/a/b": true, "https://mcp.example/a": true, "https://mcp.example/": true,
		"https://mcp.example": true, "https://MCP.example/a/": true, "https://mcp.example:443/a": true,
		"https://mcp.example/a/bc": false, "https://mcp.example/aa": false, "http://mcp.example/a/b": false,
		"https://mcp.example:8443/a/b": false, "https://evil.example/a/b": false, "": false,
	} {
		if got := covers(resource, server); got != want {
			t.Errorf("%q: %v", resource, got)
		}
	}
}

// status is how a request was answered; 0 where it wasn't.
func status(c *http.Client, method, to, host string) (code int, header http.Header) {
	req, err := http.NewRequest(method, to, nil)
	if err != nil {
		return 0, nil
	}
	req.Host = host
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, resp.Header
}

// TestForeignAnswers: answers without our state are not taken, and don't end the login.
func TestForeignAnswers(t *testing.T) {
	_, srv := protected(t, oauthtest.Traps{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l := Login{Server: srv, Show: func(page string, _ Parties) {
		u, _ := url.Parse(page)
		redirect := u.Query().Get("redirect_uri")
		for _, foreign := range []string{"?code=x", "?code=x&state=guess", "?error=access_denied&state="} {
			if got, _ := status(http.DefaultClient, http.MethodGet, redirect+foreign,
				""); got != http.StatusBadRequest {
				t.Errorf("%s: %d", foreign, got)
			}
		}
		good := redirect + "?code=x&state=" + u.Query().Get("state")
		if got, _ := status(http.DefaultClient, http.MethodGet, good,
			"rebound.example"); got != http.StatusNotFound {
			t.Errorf("another name of this machine: %d", got)
		}
		if got, _ := status(http.DefaultClient, http.MethodPost, good, ""); got != http.StatusMethodNotAllowed {
			t.Errorf("a POST: %d", got)
		}
		browse(t)(page)
	}}
	if _, err := NewClient().Login(ctx, l); err != nil {
		t.Fatal(err)
	}
}

// TestPaste: without a browser on this machine the address that another one was sent to is pasted.
func TestPaste(t *testing.T) {
	_, srv := protected(t, oauthtest.Traps{})
	r, w := io.Pipe()
	defer r.Close()
	elsewhere := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, err := NewClient().Login(ctx, Login{Server: srv, Paste: r, Show: func(page string, _ Parties) {
		_, header := status(elsewhere, http.MethodGet, page, "")
		go func() { _, _ = io.WriteString(w, "what?\n\n"+header.Get("Location")+"\n") }() // ends with r
	}})
	if err != nil || g.AccessToken == "" {
		t.Fatalf("got %v, %v", g, err)
	}
	_, err = NewClient().Login(ctx, Login{Server: srv,
		Paste: strings.NewReader("http://127.0.0.1/callback?state=other&code=x\n"), Show: func(string, Parties) {}})
	if err == nil || !strings.Contains(err.Error(), "another login") {
		t.Errorf("the answer to another login: %v", err)
	}
}

// TestLoginWaitsForNobody: a login ends with its context, and its port with it.
func TestLoginWaitsForNobody(t *testing.T) {
	_, srv := protected(t, oauthtest.Traps{})
	ctx, cancel := context.WithCancel(t.Context())
	var redirect string
	_, err := NewClient().Login(ctx, Login{Server: srv, Show: func(page string, _ Parties) {
		u, _ := url.Parse(page)
		redirect = u.Query().Get("redirect_uri")
		cancel()
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if got, _ := status(http.DefaultClient, http.MethodGet, redirect, ""); got != 0 {
		t.Errorf("the port is still open: %d", got)
	}
}

// TestNoLogin: a server that names no authorization server can't be logged in to. What it answers
// is said, and "doesn't ask" only of one that doesn't.
func TestNoLogin(t *testing.T) {
	const doesNotAsk = "doesn't ask for a login"
	for _, tc := range []struct {
		name      string
		post, get int
		to, want  string
	}{
		{"open", 200, 200, "", doesNotAsk},
		{"open, of the older transport", 405, 200, "", doesNotAsk},
		{"asks", 401, 401, "",
			"it answers 401 and names no authorization server; write a token into the headers of its entry in " +
				"servers.json"},
		{"asks, of the older transport", 405, 401, "", "it answers 401 and names"},
		{"broken", 500, 200, "",
			"it answers 500, which asks for no login, and names no authorization server; see whether the URL is " +
				"right in its entry in servers.json"},
		{"not there", 404, 404, "", "it answers 404, which"},
		{"moved", 307, 307, "https://far.example/s3cr3t",
			"it answers 307, a redirection to https://far.example, and names no authorization server; if that is " +
				"right, write"},
		{"moved within", 307, 307, "/s3cr3t", "it answers 307, which"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("WWW-Authenticate", "Bearer")
				w.Header().Set("Location", tc.to)
				switch {
				case r.URL.Path != "/mcp":
					w.WriteHeader(http.StatusNotFound)
				case r.Method == http.MethodPost:
					w.WriteHeader(tc.post)
				default:
					w.WriteHeader(tc.get)
				}
			}))
			defer far.Close()
			_, err := login(t, discovery.Server{Name: "far", URL: far.URL + "/mcp",
				Source: discovery.Source{Path: "servers.json"}})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, ErrNoLogin) != (tc.want == doesNotAsk) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestConfiguredClient: a client that was registered beforehand is used as its entry has it.
// localhost means two addresses, and both are ours or the login isn't begun.
func TestConfiguredClient(t *testing.T) {
	l, redirect, err := listen(discovery.OAuth{ClientID: "mine"})
	if err != nil || len(l) != 1 || !strings.HasPrefix(redirect, "http://127.0.0.1:") {
		t.Fatalf("got %s, %v", redirect, err)
	}
	closeAll(l)
	port := l[0].Addr().(*net.TCPAddr).Port
	entry := discovery.OAuth{ClientID: "mine", CallbackPort: port}
	six := net.JoinHostPort("::1", strconv.Itoa(port))
	other, err := net.Listen("tcp6", six)
	hasSix := err == nil
	if hasSix {
		if _, _, err := listen(entry); err == nil || !strings.Contains(err.Error(), six) {
			t.Errorf("got %v, want that %s is taken", err, six)
		}
		_ = other.Close()
	}
	l, redirect, err = listen(entry) // what the failure had opened is closed
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(l)
	if redirect != fmt.Sprintf("http://localhost:%d%s", port, callbackPath) || (len(l) == 2) != hasSix {
		t.Errorf("got %s, %d addresses", redirect, len(l))
	}
}

// TestSlowServers: one that doesn't begin to answer is given up, and what is said of it holds
// nothing of its address but the origin.
func TestSlowServers(t *testing.T) {
	stuck := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/s3cr3t" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		select {
		case <-r.Context().Done():
		case <-stuck:
		}
	}))
	defer slow.Close()
	defer close(stuck)
	c := NewClient()
	if c.any.ResponseHeaderTimeout != headerTimeout || c.far.ResponseHeaderTimeout != headerTimeout ||
		c.to(new(url.URL)).Timeout != totalTimeout {
		t.Fatal("the client has no limits")
	}
	c.any.ResponseHeaderTimeout = 50 * time.Millisecond
	_, err := c.Login(t.Context(), Login{Server: discovery.Server{Name: "slow",
		URL: slow.URL + "/s3cr3t?token=s3cr3t"}, Show: func(string, Parties) {}})
	if err == nil || !strings.Contains(err.Error(), "timeout awaiting response headers") ||
		strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("got %v", err)
	}
}
