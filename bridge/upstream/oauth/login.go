package oauth

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	callbackPath = "/callback"
	pasteLimit   = 16 << 10 // bytes of a pasted line
)

// Login is one login by the user.
type Login struct {
	Server discovery.Server
	Scopes []string // to ask for besides

	Show  func(page string, p Parties) // is given the page where the user agrees, and who takes part; required
	Open  func(page string)            // opens it in a browser; nil: the user does
	Paste io.Reader                    // lines of which one may be the address that the browser was sent to; nil for none. It is read until the login ends, and one line on

	// Confirm asks the user, before anything is opened or sent, whether parties of several origins belong together. It returns soon after
	// its context ends. nil: nobody can be asked, and such a login fails.
	Confirm func(ctx context.Context, p Parties) (bool, error)
}

// Login has the user agree and returns what was given. It waits for the user until ctx ends.
func (c *Client) Login(ctx context.Context, l Login) (Grant, error) {
	a, err := c.find(ctx, l.Server)
	if err != nil {
		return Grant{}, err
	}
	p, err := a.parties()
	if err != nil {
		return Grant{}, err
	}
	if err := l.agreed(ctx, p); err != nil {
		return Grant{}, err
	}
	listener, redirect, err := listen(l.Server.OAuth)
	if err != nil {
		return Grant{}, err
	}
	defer func() { _ = listener.Close() }()
	scope := l.scope(a)
	g := Grant{
		Server: l.Server.Name, URL: l.Server.URL, Resource: a.resource, Issuer: a.issuer, Token: a.token, Revoke: a.revoke, Scope: scope,
		ClientID: l.Server.OAuth.ClientID, ClientSecret: l.Server.OAuth.ClientSecret,
	}
	g.AuthMethod = authMethod(g.ClientSecret, "", a.methods)
	if g.ClientID == "" {
		if g.ClientID, g.ClientSecret, g.AuthMethod, err = c.registerClient(ctx, a, redirect, scope); err != nil {
			return Grant{}, err
		}
	}
	verifier, state := rand.Text()+rand.Text(), rand.Text() // 52 characters of 5 bits (RFC 7636, 4.1: 43 to 128)
	page, err := authorizeURL(a, g, redirect, scope, state, verifier)
	if err != nil {
		return Grant{}, err
	}
	w := &waiter{state: state, issuer: a.issuer, issNeeded: a.issInAnswer, done: make(chan outcome, 1)}
	code, err := l.await(ctx, w, listener, page, p)
	if err != nil {
		return Grant{}, err
	}
	return g, c.exchange(ctx, &g, code, verifier, redirect)
}

// scope is what to ask for.
func (l Login) scope(a *authority) string {
	scopes := slices.Clone(a.scopes)
	for _, s := range l.Scopes {
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	if a.offline && len(scopes) > 0 && l.Server.OAuth.Scopes == nil && !slices.Contains(scopes, "offline_access") {
		scopes = append(scopes, "offline_access") // else some servers give no refresh token
	}
	return strings.Join(scopes, " ")
}

// listen opens the port that the browser is sent to (RFC 8252, 7.3). A client that was registered beforehand for a port has, by
// the hosts' habit, localhost in its redirect URI.
func listen(o discovery.OAuth) (net.Listener, string, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.CallbackPort)))
	if err != nil {
		return nil, "", fmt.Errorf("opening a port for the browser's answer: %w", err)
	}
	host := "127.0.0.1"
	if o.ClientID != "" && o.CallbackPort != 0 {
		host = "localhost"
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return l, "http://" + host + ":" + port + callbackPath, nil
}

func authorizeURL(a *authority, g Grant, redirect, scope, state, verifier string) (string, error) {
	u, err := url.Parse(a.authorize)
	if err != nil {
		return "", errors.New("the authorization endpoint can't be used")
	}
	sum := sha256.Sum256([]byte(verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": g.ClientID, "redirect_uri": redirect, "state": state, "scope": scope, "resource": g.Resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// outcome is what the browser brought back.
type outcome struct {
	code string
	err  error
}

// waiter takes the browser's answer. The first one that has our state counts; others are somebody else's, and are ignored.
type waiter struct {
	state, issuer string
	issNeeded     bool
	done          chan outcome // has room for one
}

var errForeign = errors.New("this is not the answer that the login waits for")

// take judges the parameters of an answer.
func (w *waiter) take(q url.Values) error {
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(w.state)) != 1 {
		return errForeign
	}
	var o outcome
	iss, named := q.Get("iss"), q.Has("iss")
	switch {
	case named && iss != w.issuer, w.issNeeded && !named:
		// Somebody may have had us ask one server and be answered by another (RFC 9207).
		o.err = errors.New("the answer comes from another authorization server than was asked; nothing was sent to either")
	case q.Get("error") != "":
		o.err = &Error{Code: plain(q.Get("error")), Description: plain(q.Get("error_description"))}
	case q.Get("code") == "":
		o.err = errors.New("the answer holds no code")
	default:
		o.code = q.Get("code")
	}
	select {
	case w.done <- o:
	default:
		return errForeign
	}
	return o.err
}

// ServeHTTP answers the browser. Whoever reaches it under another name than this machine's (DNS rebinding) isn't answered.
func (w *waiter) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.Host)
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	rw.Header().Set("Cache-Control", "no-store")
	rw.Header().Set("Referrer-Policy", "no-referrer")
	switch {
	case host != "127.0.0.1" && host != "localhost", r.URL.Path != callbackPath:
		rw.WriteHeader(http.StatusNotFound)
	case r.Method != http.MethodGet:
		rw.WriteHeader(http.StatusMethodNotAllowed)
	default:
		switch err := w.take(r.URL.Query()); {
		case errors.Is(err, errForeign):
			rw.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(rw, "This is not the answer that mcp-bridge waits for.\n")
		case err != nil:
			rw.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(rw, "mcp-bridge is not logged in; the terminal says why.\n")
		default:
			_, _ = io.WriteString(rw, "mcp-bridge is logged in. You can close this page.\n")
		}
	}
}

// await shows the page and waits for the answer, through the port or from a pasted line.
func (l Login) await(ctx context.Context, w *waiter, listener net.Listener, page string, p Parties) (string, error) {
	server := &http.Server{Handler: w, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	served := make(chan struct{})
	go func() { // ends with the listener
		_ = server.Serve(listener)
		close(served)
	}()
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // the browser is to see the last words
		defer cancel()
		if server.Shutdown(stop) != nil {
			_ = server.Close()
		}
		<-served
	}()
	l.Show(page, p)
	if l.Open != nil {
		l.Open(page)
	}
	pasted := make(chan error, 1)
	if l.Paste != nil {
		go func() { pasted <- readPasted(l.Paste, w) }() // a read of a terminal can't be ended; it ends with the process
	}
	for {
		select {
		case o := <-w.done:
			return o.code, o.err
		case err := <-pasted:
			if err != nil && !errors.Is(err, io.EOF) {
				return "", err
			}
			pasted = nil // the outcome is with the waiter, or comes from the browser
		case <-ctx.Done():
			return "", fmt.Errorf("nobody agreed in time: %w", ctx.Err())
		}
	}
}

// readPasted reads lines until one is the answer, or they end.
func readPasted(r io.Reader, w *waiter) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, pasteLimit)
	for lines.Scan() {
		u, err := url.Parse(strings.TrimSpace(lines.Text()))
		if err != nil || !u.Query().Has("state") {
			continue
		}
		if err := w.take(u.Query()); !errors.Is(err, errForeign) {
			return nil // the outcome is with the waiter
		}
		return errors.New("the pasted address is the answer to another login; begin anew")
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the pasted address: %w", err)
	}
	return io.EOF
}
