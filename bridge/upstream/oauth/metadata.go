package oauth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// authority is who authorizes for a server, and how.
type authority struct {
	server   *url.URL
	resource string   // to name in requests (RFC 8707)
	scopes   []string // to ask for, as the server says; nil: it says nothing

	issuer, authorize, token, register, revoke string

	issInAnswer bool     // the answer to an authorization request names its issuer
	methods     []string // of authenticating a client to the token endpoint; nil: client_secret_basic (RFC 8414)
	offline     bool     // it knows the scope offline_access
}

// resourceMetadata is what a server says of itself (RFC 9728).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// serverMetadata is what an authorization server says of itself (RFC 8414, OpenID Connect Discovery).
type serverMetadata struct {
	Issuer      string   `json:"issuer"`
	Authorize   string   `json:"authorization_endpoint"`
	Token       string   `json:"token_endpoint"`
	Register    string   `json:"registration_endpoint"`
	Revoke      string   `json:"revocation_endpoint"`
	Challenges  []string `json:"code_challenge_methods_supported"`
	Methods     []string `json:"token_endpoint_auth_methods_supported"`
	Scopes      []string `json:"scopes_supported"`
	IssInAnswer bool     `json:"authorization_response_iss_parameter_supported"`
}

// challenge is what a server says where it refuses (RFC 6750, RFC 9728 5.1).
type challenge struct {
	metadata, scope string

	status   int    // of the refusal, or of what was answered in its place
	location string // the origin that the answer redirects to; empty where it doesn't, or stays where it is
}

var (
	challengeMetadata = regexp.MustCompile(`(?i)\bresource_metadata\s*=\s*(?:"([^"\\]{1,1000})"|([^\s",]{1,1000}))`)
	challengeScope    = regexp.MustCompile(`(?i)(?:^|[\s,])scope\s*=\s*(?:"([^"\\]{1,1000})"|([^\s",]{1,1000}))`)
)

func readChallenge(h http.Header) (c challenge) {
	for _, v := range h.Values("WWW-Authenticate") {
		if m := challengeMetadata.FindStringSubmatch(v); m != nil && c.metadata == "" {
			c.metadata = m[1] + m[2]
		}
		if m := challengeScope.FindStringSubmatch(v); m != nil && c.scope == "" {
			c.scope = m[1] + m[2]
		}
	}
	return c
}

// ErrNoLogin says that a server neither asks for a login nor says who would give one.
var ErrNoLogin = errors.New("the server doesn't ask for a login, and doesn't say who would authorize for it")

// noLogin says of a server for which nobody authorizes what it answered instead, and what to do about it.
func (ch challenge) noLogin(s discovery.Server) error {
	entry := "its configuration"
	if s.Source.Path != "" {
		entry = "its entry in " + s.Source.Path
	}
	switch {
	case ch.status == http.StatusUnauthorized:
		return fmt.Errorf("it answers 401 and names no authorization server; write a token into the headers of %s", entry)
	case ch.status/100 == 2:
		return ErrNoLogin
	case ch.location != "":
		return fmt.Errorf("it answers %d, a redirection to %s, and names no authorization server; if that is right, write its URL there into %s", ch.status, ch.location, entry)
	}
	return fmt.Errorf("it answers %d, which asks for no login, and names no authorization server; see whether the URL is right in %s", ch.status, entry)
}

// find finds out who authorizes for a server.
func (c *Client) find(ctx context.Context, s discovery.Server) (*authority, error) {
	server, err := url.Parse(s.URL)
	if err != nil || server.Host == "" {
		return nil, errors.New("its URL is none")
	}
	if !discovery.Confidential(server) {
		return nil, fmt.Errorf("it is reached over plain http on another machine, where others could read a login's token on its way; write its https address in %s", s.Source.Path)
	}
	ch, err := c.probe(ctx, s)
	if err != nil {
		return nil, err
	}
	meta, err := c.resource(ctx, server, ch)
	if err != nil {
		return nil, err
	}
	a := &authority{server: server, resource: meta.Resource, scopes: meta.Scopes}
	if ch.scope != "" {
		a.scopes = strings.Fields(ch.scope)
	}
	if s.OAuth.Resource != "" {
		a.resource = s.OAuth.Resource
	}
	if s.OAuth.Scopes != nil {
		a.scopes = s.OAuth.Scopes
	}
	err = c.authorizer(ctx, a, meta.Servers, s.OAuth.MetadataURL, server)
	if errors.Is(err, ErrNoLogin) {
		err = ch.noLogin(s)
	}
	return a, err
}

// The requests of a probe. A server may refuse any of them, and let those before it pass.
const (
	helloNewer = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newerVersion +
		`","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"mcp-bridge","version":"login"}}}}`
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + protocolVersion +
		`","capabilities":{},"clientInfo":{"name":"mcp-bridge","version":"login"}}}`
	helloTools = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

// probe asks the server without any authorization, to be refused: for its tools by the newer protocol, for a session and its tools by the
// older one, and by GET for the older transport, whose answer counts where the server takes no POST there.
func (c *Client) probe(ctx context.Context, s discovery.Server) (ch challenge, err error) {
	session := ""
	for _, body := range []string{helloNewer, hello, helloTools, ""} {
		header := http.Header{}
		switch {
		case body == helloNewer:
			header.Set("Mcp-Protocol-Version", newerVersion)
			header.Set("Mcp-Method", "tools/list")
		case body == helloTools && ch.status/100 != 2:
			continue
		case body == helloTools:
			header.Set("Mcp-Protocol-Version", protocolVersion)
			if session != "" {
				header.Set("Mcp-Session-Id", session)
			}
		}
		resp, err := c.knock(ctx, s, body, header)
		if err != nil {
			return ch, err
		}
		_ = resp.Body.Close() // it may be a stream that doesn't end
		switch {
		case resp.StatusCode == http.StatusUnauthorized:
			ch = readChallenge(resp.Header)
			ch.status = resp.StatusCode
			return ch, nil
		case body == hello:
			ch, session = challenge{status: resp.StatusCode, location: elsewhere(resp, resp.Request.URL)}, resp.Header.Get("Mcp-Session-Id")
		case body == "" && resp.StatusCode/100 == 2 && (ch.status == http.StatusNotFound || ch.status == http.StatusMethodNotAllowed):
			ch = challenge{status: resp.StatusCode}
		}
	}
	return ch, nil
}

// knock sends one message of a probe, or asks for a stream where there is none. The caller closes the body.
func (c *Client) knock(ctx context.Context, s discovery.Server, body string, header http.Header) (*http.Response, error) {
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL, strings.NewReader(body))
	if err != nil {
		return nil, errors.New("its URL can't be used")
	}
	for name, value := range s.Headers {
		if !strings.EqualFold(name, "Authorization") {
			req.Header.Set(name, value)
		}
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, fmt.Errorf("asking %s: %w", hostOf(req.URL), err)
	}
	return resp, nil
}

// elsewhere is the origin that an answer redirects to, without the path, which may hold something secret; empty for the same one or none.
func elsewhere(resp *http.Response, from *url.URL) string {
	to, err := resp.Location()
	if err != nil || resp.StatusCode/100 != 3 || to.Host == "" || sameOrigin(to, from) {
		return ""
	}
	return hostOf(to)
}

// resource is the server's own metadata: where the refusal says, else at the well-known places, else none, and then the server's
// origin authorizes itself (MCP 2025-03-26).
func (c *Client) resource(ctx context.Context, server *url.URL, ch challenge) (resourceMetadata, error) {
	var places []string
	if ch.metadata != "" {
		if u, err := endpoint(ch.metadata, server); err == nil && sameOrigin(u, server) {
			places = append(places, ch.metadata)
		}
	}
	for _, path := range []string{strings.TrimSuffix(server.EscapedPath(), "/"), ""} {
		place := hostOf(server) + "/.well-known/oauth-protected-resource" + path
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	for _, place := range places {
		var m resourceMetadata
		found, err := c.get(ctx, place, server, &m)
		if err != nil {
			return m, err
		}
		if !found {
			continue
		}
		if !covers(m.Resource, server) {
			return m, errors.New("the server's metadata is for another resource; its tokens are not asked for")
		}
		if len(m.Servers) == 0 {
			return m, errors.New("the server's metadata names no authorization server")
		}
		return m, nil
	}
	whole := *server
	whole.RawQuery, whole.Fragment, whole.User = "", "", nil
	return resourceMetadata{Resource: whole.String(), Servers: []string{hostOf(server)}}, nil
}

func sameOrigin(a, b *url.URL) bool {
	return discovery.OriginOf(a) == discovery.OriginOf(b)
}

// covers says whether a resource identifier is the server's URL, or a path above it at the same origin.
func covers(resource string, server *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || !sameOrigin(r, server) || r.Fragment != "" {
		return false
	}
	above := strings.TrimSuffix(r.EscapedPath(), "/")
	return server.EscapedPath() == above || strings.HasPrefix(server.EscapedPath(), above+"/")
}

// authorizer reads the metadata of the first authorization server that has any.
func (c *Client) authorizer(ctx context.Context, a *authority, issuers []string, configured string, server *url.URL) error {
	if configured != "" {
		var m serverMetadata
		if _, err := endpoint(configured, server); err != nil {
			return fmt.Errorf("the configured address of the authorization server's metadata can't be used: %w", err)
		}
		found, err := c.get(ctx, configured, server, &m)
		if err != nil || !found {
			return errors.Join(errors.New("there is no metadata at the configured address of the authorization server's"), err)
		}
		return a.take(m, m.Issuer, server)
	}
	for _, issuer := range issuers[:min(len(issuers), 5)] {
		u, err := endpoint(issuer, server)
		if err != nil {
			return fmt.Errorf("the server names an authorization server that can't be used: %w", err)
		}
		for _, place := range metadataPlaces(u) {
			var m serverMetadata
			found, err := c.get(ctx, place, server, &m)
			if err != nil {
				return err
			}
			if found {
				return a.take(m, issuer, server)
			}
		}
	}
	return ErrNoLogin
}

// metadataPlaces are where an issuer's metadata may be, in the order to try (RFC 8414 3.1, and OpenID Connect's two).
func metadataPlaces(issuer *url.URL) []string {
	host, path := hostOf(issuer), strings.TrimSuffix(issuer.EscapedPath(), "/")
	places := []string{host + "/.well-known/oauth-authorization-server" + path, host + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, host+path+"/.well-known/openid-configuration")
	}
	return places
}

// take checks an authorization server's metadata and keeps what a login needs.
func (a *authority) take(m serverMetadata, issuer string, server *url.URL) error {
	switch {
	case m.Issuer == "" || strings.TrimSuffix(m.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
		return errors.New("the authorization server's metadata is of another issuer than it was asked for (RFC 8414, 3.3)")
	case !slices.Contains(m.Challenges, "S256"):
		return errors.New("the authorization server doesn't say that it supports PKCE with S256, without which nobody is to log in")
	}
	for _, e := range []struct {
		name, value string
		needed      bool
	}{
		{"authorization_endpoint", m.Authorize, true}, {"token_endpoint", m.Token, true},
		{"registration_endpoint", m.Register, false}, {"revocation_endpoint", m.Revoke, false},
	} {
		if e.value == "" && !e.needed {
			continue
		}
		if _, err := endpoint(e.value, server); err != nil {
			return fmt.Errorf("the authorization server's %s can't be used: %w", e.name, err)
		}
	}
	a.issuer, a.authorize, a.token, a.register, a.revoke = m.Issuer, m.Authorize, m.Token, m.Register, m.Revoke
	a.issInAnswer, a.methods, a.offline = m.IssInAnswer, m.Methods, slices.Contains(m.Scopes, "offline_access")
	return nil
}
