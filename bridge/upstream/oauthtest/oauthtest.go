// Package oauthtest is an authorization server, and a guard for MCP servers that asks for its
// tokens, for tests: strict where the rules bind a client, and wrong in every way that a client
// must bear, by switches.
package oauthtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Server is one authorization server and the resource that it protects, at one origin. Its switches
// may be changed while it runs, by Set.
type Server struct {
	URL string // of both; the protected server is at URL + Path

	mu       sync.Mutex
	traps    Traps
	clients  map[string]string // redirect URI by client id
	codes    map[string]code
	access   map[string]string // scope by live access token
	refresh  map[string]string // client by live refresh token
	requests map[string]int    // by endpoint
	errors   []string          // what clients did wrong
}

// Path is where the protected server is.
const Path = "/mcp"

// Traps are the ways in which a Server is wrong, or strange. The zero value is a good one.
type Traps struct {
	NoResourceMetadata bool   // it is an older server, which authorizes itself
	MetadataElsewhere  string // where the refusal says that the metadata is
	Resource           string // that the metadata names; empty: the right one
	Issuer             string // that its own metadata names; empty: the right one
	NoPKCE             bool   // it doesn't say that it supports PKCE
	OpenIDOnly         bool   // its metadata is only where OpenID Connect has it
	TokenEndpoint      string // that its metadata names; empty: the right one
	RevokeEndpoint     string // likewise
	NoRegistration     bool   // it names no endpoint to register at
	RefuseRegistration bool
	Secret             bool   // it gives clients a secret
	Iss                string // in the answer, instead of the right one
	NoIss              bool   // none in the answer, though its metadata says that there is one
	Deny               bool   // the user doesn't agree
	ExpiresIn          any    // of access tokens, in seconds; nil: 3600
	NoRotation         bool   // refresh tokens stay good
	TokenType          string // empty: Bearer
	Huge               bool   // answers of the token endpoint without end
	Broken             bool   // the token endpoint answers 503
	Redirect           string // the token endpoint sends clients there
	NeedScope          string // that the protected server asks for beyond the first
	RefuseAll          bool   // the protected server refuses every token

	Hold <-chan struct{} // the token endpoint answers when it is closed; nil: at once
}

type code struct{ client, redirect, challenge, scope string }

// New starts a server in front of h, the protected one, and stops it with the test, which fails if
// a client broke a rule.
func New(t *testing.T, h http.Handler) *Server {
	t.Helper()
	s := &Server{
		clients: map[string]string{}, codes: map[string]code{}, access: map[string]string{},
		refresh: map[string]string{}, requests: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-protected-resource"+Path, s.resourceMetadata)
	mux.HandleFunc("/.well-known/oauth-authorization-server", s.metadata(false))
	mux.HandleFunc("/.well-known/openid-configuration", s.metadata(true))
	mux.HandleFunc("/register", s.register)
	mux.HandleFunc("/authorize", s.authorize)
	mux.HandleFunc("/token", s.token)
	mux.HandleFunc("/revoke", s.revoke)
	mux.Handle(Path, s.guarded(h))
	ts := httptest.NewServer(mux)
	s.URL = ts.URL
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
		for _, e := range s.errors {
			t.Error("the client: " + e)
		}
	})
	return s
}

// Set changes the switches.
func (s *Server) Set(change func(*Traps)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.traps)
}

// Expire makes all access tokens worthless.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access = map[string]string{}
}

// Forget makes all tokens worthless.
func (s *Server) Forget() {
	s.Expire()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh = map[string]string{}
}

// Requests is how often an endpoint was asked: "token", "refresh", "register", "authorize",
// "revoke", "refused".
func (s *Server) Requests(endpoint string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[endpoint]
}

// Secrets are all tokens there are.
func (s *Server) Secrets() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.access {
		all = append(all, t)
	}
	for t := range s.refresh {
		all = append(all, t)
	}
	return all
}

// begin counts a request, and is the switches at that time.
func (s *Server) begin(endpoint string) Traps {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[endpoint]++
	return s.traps
}

func (s *Server) wrong(w http.ResponseWriter, format string, args ...any) {
	s.mu.Lock()
	s.errors = append(s.errors, fmt.Sprintf(format, args...))
	s.mu.Unlock()
	reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_request",
		"error_description": fmt.Sprintf(format, args...)})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func or(v, otherwise string) string {
	if v == "" {
		return otherwise
	}
	return v
}

func (s *Server) resourceMetadata(w http.ResponseWriter, _ *http.Request) {
	t := s.begin("resource")
	if t.NoResourceMetadata {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	reply(w, http.StatusOK, map[string]any{
		"resource": or(t.Resource, s.URL+Path), "authorization_servers": []string{s.URL},
		"scopes_supported": []string{"tools"},
	})
}

func (s *Server) metadata(openID bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		t := s.begin("metadata")
		if t.OpenIDOnly && !openID {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		m := map[string]any{
			"issuer": or(t.Issuer, s.URL), "authorization_endpoint": s.URL + "/authorize?tenant=1",
			"token_endpoint":        or(t.TokenEndpoint, s.URL+"/token"),
			"registration_endpoint": s.URL + "/register", "revocation_endpoint": or(t.RevokeEndpoint, s.URL+"/revoke"),
			"code_challenge_methods_supported":               []string{"plain", "S256"},
			"authorization_response_iss_parameter_supported": true,
			"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_post"},
		}
		if t.NoPKCE {
			delete(m, "code_challenge_methods_supported")
		}
		if t.NoRegistration {
			delete(m, "registration_endpoint")
		}
		reply(w, http.StatusOK, m)
	}
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	t := s.begin("register")
	var ask struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	if json.NewDecoder(r.Body).Decode(&ask) != nil || len(ask.Redirects) != 1 || ask.Method != "none" {
		s.wrong(w, "it registers wrongly: %+v", ask)
		return
	}
	if t.RefuseRegistration {
		reply(w, http.StatusForbidden, map[string]any{"error": "invalid_client_metadata",
			"error_description": "no strangers"})
		return
	}
	id := "client-" + rand.Text()
	s.mu.Lock()
	s.clients[id] = ask.Redirects[0]
	s.mu.Unlock()
	got := map[string]any{"client_id": id}
	if t.Secret {
		got["client_secret"] = "secret-of-" + id
	}
	reply(w, http.StatusCreated, got)
}

// authorize is a user who agrees at once.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	t := s.begin("authorize")
	q := r.URL.Query()
	s.mu.Lock()
	redirect := s.clients[q.Get("client_id")]
	s.mu.Unlock()
	to, err := url.Parse(q.Get("redirect_uri"))
	switch {
	case err != nil || redirect != q.Get("redirect_uri"):
		s.wrong(w, "another redirect URI than it registered: %q", q.Get("redirect_uri"))
		return
	case to.Scheme != "http" || to.Hostname() != "127.0.0.1" || to.Port() == "":
		s.wrong(w, "a redirect URI that is not of 127.0.0.1: %q", to)
		return
	case q.Get("response_type") != "code", q.Get("code_challenge_method") != "S256",
		len(q.Get("code_challenge")) != 43, len(q.Get("state")) < 22,
		q.Get("resource") != s.URL+Path, q.Get("tenant") != "1":
		s.wrong(w, "a wrong request for authorization: %v", q)
		return
	}
	answer := url.Values{"state": {q.Get("state")}, "iss": {or(t.Iss, s.URL)}}
	if t.NoIss {
		answer.Del("iss")
	}
	if t.Deny {
		answer.Set("error", "access_denied")
		answer.Set("error_description", "not today")
	} else {
		c := rand.Text()
		s.mu.Lock()
		s.codes[c] = code{q.Get("client_id"), redirect, q.Get("code_challenge"), q.Get("scope")}
		s.mu.Unlock()
		answer.Set("code", c)
	}
	to.RawQuery = answer.Encode()
	http.Redirect(w, r, to.String(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	t := s.begin("token")
	if t.Hold != nil {
		<-t.Hold
	}
	switch {
	case t.Redirect != "":
		http.Redirect(w, r, t.Redirect, http.StatusTemporaryRedirect)
		return
	case t.Broken:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case t.Huge:
		w.Header().Set("Content-Type", "application/json")
		for junk := []byte(strings.Repeat(" ", 1<<16)); ; {
			if _, err := w.Write(junk); err != nil {
				return
			}
		}
	}
	if err := r.ParseForm(); err != nil || r.PostForm.Get("resource") != s.URL+Path {
		s.wrong(w, "a token without its resource: %v", r.PostForm)
		return
	}
	client := r.PostForm.Get("client_id")
	if t.Secret && r.PostForm.Get("client_secret") != "secret-of-"+client {
		s.wrong(w, "a client without its secret")
		return
	}
	if r.PostForm.Get("grant_type") == "refresh_token" {
		s.renew(w, r.PostForm, t)
		return
	}
	s.mu.Lock()
	c, ok := s.codes[r.PostForm.Get("code")]
	delete(s.codes, r.PostForm.Get("code"))
	s.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	if !ok || c.client != client || c.redirect != r.PostForm.Get("redirect_uri") ||
		c.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
		s.wrong(w, "a code that isn't its own, or a wrong verifier")
		return
	}
	s.give(w, client, c.scope, t)
}

func (s *Server) renew(w http.ResponseWriter, form url.Values, t Traps) {
	s.mu.Lock()
	s.requests["refresh"]++
	client, ok := s.refresh[form.Get("refresh_token")]
	if ok && !t.NoRotation {
		delete(s.refresh, form.Get("refresh_token"))
	}
	s.mu.Unlock()
	if !ok || client != form.Get("client_id") {
		reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant",
			"error_description": "no such token " + form.Get("refresh_token")})
		return
	}
	s.give(w, client, "", t)
}

func (s *Server) give(w http.ResponseWriter, client, scope string, t Traps) {
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	expires := t.ExpiresIn
	if expires == nil {
		expires = 3600
	}
	answer := map[string]any{"access_token": access, "token_type": or(t.TokenType, "Bearer"),
		"expires_in": expires}
	s.mu.Lock()
	s.access[access] = scope
	if !t.NoRotation || len(s.refresh) == 0 {
		s.refresh[refresh] = client
		answer["refresh_token"] = refresh
	}
	s.mu.Unlock()
	if scope != "" {
		answer["scope"] = scope
	}
	reply(w, http.StatusOK, answer)
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	s.begin("revoke")
	s.mu.Lock()
	delete(s.refresh, r.FormValue("token"))
	delete(s.access, r.FormValue("token"))
	s.mu.Unlock()
}

// guarded lets those with a live token through.
func (s *Server) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		t := s.traps
		scope, ok := s.access[token]
		s.mu.Unlock()
		where := or(t.MetadataElsewhere, s.URL+"/.well-known/oauth-protected-resource"+Path)
		switch {
		case !ok || t.RefuseAll:
			s.begin("refused")
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="invalid_token", resource_metadata=%q`,
				where))
			w.WriteHeader(http.StatusUnauthorized)
		case t.NeedScope != "" && !strings.Contains(" "+scope+" ", " "+t.NeedScope+" "):
			w.Header().Set("WWW-Authenticate",
				fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q, resource_metadata=%q`, t.NeedScope, where))
			w.WriteHeader(http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}
