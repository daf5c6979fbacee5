package oauth

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

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

	Show func(page string, p Parties) // is given the page where the user agrees, and who takes part
	Open func(page string)            // opens it in a browser; nil: the user does
	// a line of it may be the address that the browser was sent to; may be nil
	Paste io.Reader

	// Confirm asks the user p.Question, before anything is opened or sent. It returns soon after its
	// context ends. Without it, a login that has such a question fails.
	Confirm func(ctx context.Context, p Parties) (bool, error)

	before Grant // of the same server; the user has agreed to its issuer
}

// Login asks the user to agree and returns the grant. It waits for the user until ctx ends.
func (c *Client) Login(ctx context.Context, l Login) (Grant, error) {
	a, err := c.find(ctx, l.Server)
	if err != nil {
		return Grant{}, err
	}
	p := a.parties()
	p.Client = l.client(a.Issuer)
	if err := l.agreed(ctx, p); err != nil {
		return Grant{}, err
	}
	listeners, redirect, err := listen(l.Server.OAuth)
	if err != nil {
		return Grant{}, err
	}
	defer closeAll(listeners)
	o := l.Server.OAuth
	g := Grant{
		Server: l.Server.Name, URL: l.Server.URL, Resource: a.resource, Issuer: a.Issuer, Token: a.Token,
		Revoke: a.Revoke, Scope: l.scope(a), ClientID: o.ClientID, ClientSecret: o.ClientSecret,
		AuthMethod: authMethod(o.ClientSecret, "", a.Methods),
	}
	if g.ClientID == "" {
		if err := c.register(ctx, a, &g, redirect); err != nil {
			return Grant{}, err
		}
	}
	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	options := parameters(map[string]string{"scope": g.Scope, "resource": g.Resource})
	page := g.config(a.Authorize, redirect).AuthCodeURL(state,
		append(options, oauth2.S256ChallengeOption(verifier))...)
	w := &waiter{state: state, issuer: a.Issuer, issNeeded: a.IssInAnswer, done: make(chan outcome, 1)}
	code, err := l.await(ctx, w, listeners, page, p)
	if err != nil {
		return Grant{}, err
	}
	return g, c.exchange(ctx, &g, code, verifier, redirect)
}

// scope returns the scopes to ask for.
func (l Login) scope(a *authority) string {
	scopes := slices.Clone(a.scopes)
	for _, s := range l.Scopes {
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	if slices.Contains(a.Supported, "offline_access") && len(scopes) > 0 && l.Server.OAuth.Scopes == nil &&
		!slices.Contains(scopes, "offline_access") {
		scopes = append(scopes, "offline_access") // else some servers give no refresh token
	}
	return strings.Join(scopes, " ")
}

// listen opens the port that the browser is sent to (RFC 8252, 7.3). A client that was registered
// by hand for a port has, by the hosts' habit, localhost in its redirect URI. A browser may take
// that for either loopback address, so both are opened where there are two.
func listen(o discovery.OAuth) (all []net.Listener, redirect string, err error) {
	port := strconv.Itoa(o.CallbackPort)
	addresses, host := []string{"127.0.0.1"}, "127.0.0.1"
	if o.ClientID != "" && o.CallbackPort != 0 {
		host = "localhost"
		if probe, err := net.Listen("tcp6", "[::1]:0"); err == nil { // else there is no IPv6
			_ = probe.Close()
			addresses = append(addresses, "::1")
		}
	}
	for _, address := range addresses {
		l, err := net.Listen("tcp", net.JoinHostPort(address, port))
		if err != nil {
			closeAll(all)
			return nil, "", fmt.Errorf("opening a port for the browser's answer: %w", err)
		}
		all = append(all, l)
	}
	_, port, _ = net.SplitHostPort(all[0].Addr().String())
	return all, "http://" + net.JoinHostPort(host, port) + callbackPath, nil
}

func closeAll(all []net.Listener) {
	for _, l := range all {
		_ = l.Close()
	}
}

// outcome is the answer that the browser brought.
type outcome struct {
	code string
	err  error
}

// waiter takes the browser's answer. The first one that has our state counts. Others are not ours.
type waiter struct {
	state, issuer string
	issNeeded     bool
	done          chan outcome // has room for one
}

var errForeign = errors.New("this is not the answer that the login waits for")

// take judges the parameters of an answer. The error is errForeign if it is not ours.
func (w *waiter) take(q url.Values) error {
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(w.state)) != 1 {
		return errForeign
	}
	var o outcome
	iss, named := q.Get("iss"), q.Has("iss")
	switch {
	case named && iss != w.issuer, w.issNeeded && !named:
		// An attacker may have had us ask one server and be answered by another (RFC 9207).
		o.err = errors.New("the answer comes from another authorization server than was asked; nothing was " +
			"sent to either")
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

// ServeHTTP answers the browser, but no request for another host than this machine (DNS rebinding).
func (w *waiter) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.Host)
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	rw.Header().Set("Cache-Control", "no-store")
	rw.Header().Set("Referrer-Policy", "no-referrer")
	status, says := http.StatusOK, "mcp-bridge is logged in. You can close this page."
	switch {
	case host != "127.0.0.1" && host != "localhost", r.URL.Path != callbackPath:
		status, says = http.StatusNotFound, "There is nothing here."
	case r.Method != http.MethodGet:
		status, says = http.StatusMethodNotAllowed, "This page is only read."
	default:
		if err := w.take(r.URL.Query()); errors.Is(err, errForeign) {
			status, says = http.StatusBadRequest, "This is not the answer that mcp-bridge waits for."
		} else if err != nil {
			status, says = http.StatusBadRequest, "mcp-bridge is not logged in; the terminal says why."
		}
	}
	rw.WriteHeader(status)
	_, _ = io.WriteString(rw, says+"\n")
}

// await shows the page and waits for the answer, through the port or from a pasted line.
func (l Login) await(ctx context.Context, w *waiter, listeners []net.Listener, page string,
	p Parties) (string, error) {
	server := &http.Server{Handler: w, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	var serving sync.WaitGroup // ends with the listeners
	for _, listener := range listeners {
		serving.Go(func() { _ = server.Serve(listener) })
	}
	defer func() {
		// The browser gets the last words.
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(stop) != nil {
			_ = server.Close()
		}
		serving.Wait()
	}()
	l.Show(page, p)
	if l.Open != nil {
		l.Open(page)
	}
	pasted := make(chan error, 1)
	if l.Paste != nil {
		// A read of a terminal can't be ended. It ends with the process.
		go func() { pasted <- readPasted(l.Paste, w) }()
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
			return "", fmt.Errorf("you did not agree in time: %w", ctx.Err())
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
		return errors.New("the pasted address is the answer to another login; begin again")
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the pasted address: %w", err)
	}
	return io.EOF
}
