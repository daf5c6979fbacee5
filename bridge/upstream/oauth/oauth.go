// Package oauth logs the user in to remote servers and keeps the tokens: OAuth 2.1 as MCP's
// authorization (2025-06-18 and later) has it, for a public client on the user's own machine.
//
// A Client finds out who authorizes for a server (RFC 9728, RFC 8414), registers (RFC 7591), has
// the user agree in a browser (RFC 8252, RFC 8707, RFC 9207) and fetches tokens. A Store keeps
// them, in the operating system's keyring or in files that only the user can read. A Source hands
// them out to connections and renews them, one process of the user at a time, since a refresh token
// may be good only once.
//
// The servers it speaks to are not trusted: every answer is bounded, no redirection is followed,
// and no secret is in an error. A code goes to the token endpoint of the issuer that the server
// names. What page the browser ends at can't be seen from here: a server can begin a login at its
// own issuer and lead the user on to another, whose code then goes to the first. So the user is
// told where the code goes, and asked where it goes to another origin than the page's, or where the
// entry has a client of its own and doesn't name the issuer's metadata.
package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	protocolVersion = "2025-11-25"
	newerVersion    = "2026-07-28"

	textLimit = 300 // bytes of a server's own words in an error
)

// Error is an authorization server's refusal (RFC 6749, 5.2).
type Error struct {
	Code        string // such as invalid_grant
	Description string // the server's words, cut; may be empty
}

func (e *Error) Error() string {
	if e.Description == "" {
		return "the authorization server refused (" + e.Code + ")"
	}
	return fmt.Sprintf("the authorization server refused (%s): %s", e.Code, e.Description)
}

// send sends a request in a login to server. The caller closes the body. The error doesn't have the
// URL, which may hold a secret.
func (c *Client) send(req *http.Request, server *url.URL) (*http.Response, error) {
	resp, err := c.to(server).Do(req)
	if around, ok := errors.AsType[*url.Error](err); ok {
		return nil, fmt.Errorf("asking %s: %w", hostOf(req.URL), around.Err)
	}
	return resp, err
}

// ask sends a request as send does, and reads the answer.
func (c *Client) ask(req *http.Request, server *url.URL) (status int, h http.Header, body []byte, err error) {
	req.Header.Set("Accept", "application/json")
	resp, err := c.send(req, server)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if body, err = io.ReadAll(resp.Body); err != nil {
		err = fmt.Errorf("asking %s: %w", hostOf(req.URL), err)
	}
	return resp.StatusCode, resp.Header, body, err
}

// post sends a body, and returns the answer if it is one of success.
func (c *Client) post(ctx context.Context, to, media, body string, server *url.URL, g *Grant) ([]byte,
	error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		return nil, errors.New("an endpoint of the authorization server can't be used")
	}
	req.Header.Set("Content-Type", media)
	if g.AuthMethod == basicAuth {
		req.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(g.ClientSecret))
	}
	status, _, answer, err := c.ask(req, server)
	if err != nil || status/100 == 2 {
		return answer, err
	}
	var e struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(answer, &e) // without it, the status says all
	return nil, refusal(status, e.Error, e.Description,
		[]string{g.RefreshToken, g.AccessToken, g.ClientSecret})
}

// refusal returns the error of an answer of failure, without the secrets that we had sent.
func refusal(status int, code, description string, secrets []string) error {
	if code == "" || status/100 == 5 {
		return fmt.Errorf("the authorization server answered %d %s", status, http.StatusText(status))
	}
	return &Error{Code: plain(redact(code, secrets)), Description: plain(redact(description, secrets))}
}

func redact(s string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	return s
}

// get fetches a JSON document in a login to server. found is false if there isn't one.
func (c *Client) get(ctx context.Context, from string, server *url.URL, into any) (found bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return false, errors.New("an address of metadata can't be used")
	}
	req.Header.Set("MCP-Protocol-Version", protocolVersion)
	status, header, body, err := c.ask(req, server)
	if err != nil || status != http.StatusOK || !isJSON(header) {
		return false, err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return false, fmt.Errorf("the metadata at %s is not JSON of the expected shape", hostOf(req.URL))
	}
	return true, nil
}

func isJSON(h http.Header) bool {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

func hostOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// plain returns what a server says as it may be shown, on one line.
func plain(s string) string { return text.Brief(text.Line(s), textLimit) }
