// Package oauth logs the user in to remote servers and keeps what comes of it: OAuth 2.1 as MCP's authorization
// (2025-06-18 and later) has it, for a public client on the user's own machine.
//
// A Client finds out who authorizes for a server (RFC 9728, RFC 8414), registers (RFC 7591), has the user agree in a browser
// (RFC 8252, PKCE with S256, RFC 8707, RFC 9207) and fetches tokens. A Store keeps them, in the operating system's keyring
// or in files that only the user can read. A Source hands them out to connections and renews them, one at a time
// over all processes of the user, since a refresh token may be good only once.
//
// The servers it speaks to are not trusted: every answer is bounded, nothing follows a redirection, and no secret is in an error. Codes and
// tokens go to the origin whose page the user has agreed at, to others only where the user has been asked about them, and access tokens to
// the server besides.
package oauth

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	bodyLimit     = 256 << 10 // bytes of an answer
	textLimit     = 300       // bytes of a server's own words in an error
	dialTimeout   = 10 * time.Second
	headerTimeout = 15 * time.Second // for the beginning of an answer
	totalTimeout  = 30 * time.Second // for one whole exchange
)

// Client speaks to authorization servers. Its methods may be called concurrently.
type Client struct {
	http *http.Client
	far  *http.Client // connects to no address of this machine or its link
	name string       // of the program, as the user sees it
}

// NewClient makes a client for a program of that name.
func NewClient(name string) *Client {
	return &Client{name: name, http: newHTTP(nil), far: newHTTP(refuseNear)}
}

// newHTTP returns a client whose connections control may refuse, by address.
func newHTTP(control func(network, address string, _ syscall.RawConn) error) *http.Client {
	return &http.Client{
		Timeout: totalTimeout,
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: dialTimeout, Control: control}).DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    dialTimeout,
			ResponseHeaderTimeout:  headerTimeout,
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      true, // a handful of requests in a login, one in an hour after it
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Error is an authorization server's refusal (RFC 6749, 5.2).
type Error struct {
	Code        string // such as invalid_grant
	Description string // the server's words, cut; empty for none
}

func (e *Error) Error() string {
	if e.Description == "" {
		return "the authorization server refused (" + e.Code + ")"
	}
	return fmt.Sprintf("the authorization server refused (%s): %s", e.Code, e.Description)
}

// do sends a request in a login to a server, and reads a bounded answer.
func (c *Client) do(req *http.Request, server *url.URL) (status int, header http.Header, body []byte, err error) {
	client := c.http
	if mustBeFar(req, server) {
		client = c.far
	}
	resp, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the URL, which may hold something secret
		}
		return 0, nil, nil, fmt.Errorf("asking %s: %w", hostOf(req.URL), err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, bodyLimit+1))
	switch {
	case err != nil:
		return 0, nil, nil, fmt.Errorf("asking %s: the answer broke off", hostOf(req.URL))
	case len(body) > bodyLimit:
		return 0, nil, nil, fmt.Errorf("asking %s: the answer is longer than %d bytes", hostOf(req.URL), bodyLimit)
	}
	return resp.StatusCode, resp.Header, body, nil
}

// get fetches a JSON document, in a login to a server. found is false where there is none.
func (c *Client) get(ctx context.Context, from string, server *url.URL, into any) (found bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return false, errors.New("an address of metadata can't be used")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("MCP-Protocol-Version", protocolVersion)
	status, header, body, err := c.do(req, server)
	if err != nil {
		return false, err
	}
	if status != http.StatusOK || !isJSON(header) {
		return false, nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return false, fmt.Errorf("the metadata at %s is no JSON of the expected shape", hostOf(req.URL))
	}
	return true, nil
}

const protocolVersion, newerVersion = "2025-11-25", "2026-07-28"

func isJSON(h http.Header) bool {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

func hostOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// plain returns what a server says as it may be shown, on one line.
func plain(s string) string { return text.Brief(text.Line(s), textLimit) }
