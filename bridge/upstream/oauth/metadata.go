package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// authority is who authorizes for a server, and how.
type authority struct {
	server   *url.URL
	resource string   // to name in requests (RFC 8707)
	scopes   []string // to ask for, as the server says; nil: it says nothing
	serverMetadata
}

// resourceMetadata is what a server says of itself (RFC 9728).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// serverMetadata is what an authorization server says of itself (RFC 8414, OpenID Connect
// Discovery).
type serverMetadata struct {
	Issuer      string   `json:"issuer"`
	Authorize   string   `json:"authorization_endpoint"`
	Token       string   `json:"token_endpoint"`
	Register    string   `json:"registration_endpoint"`
	Revoke      string   `json:"revocation_endpoint"`
	Challenges  []string `json:"code_challenge_methods_supported"`
	Methods     []string `json:"token_endpoint_auth_methods_supported"` // nil: client_secret_basic
	Supported   []string `json:"scopes_supported"`
	IssInAnswer bool     `json:"authorization_response_iss_parameter_supported"`
}

// ErrNoLogin says that a server neither asks for a login nor says who would give one.
var ErrNoLogin = errors.New("the server doesn't ask for a login, and doesn't say who would authorize for it")

// find finds out who authorizes for a server.
func (c *Client) find(ctx context.Context, s discovery.Server) (*authority, error) {
	server, err := url.Parse(s.URL)
	if err != nil || server.Host == "" {
		return nil, errors.New("its URL can't be used")
	}
	if !discovery.Confidential(server) {
		return nil, fmt.Errorf("it is reached over plain http on another machine, where others could read "+
			"a login's token on its way; write its https address in %s", s.Source.Path)
	}
	ch, err := c.probe(ctx, s, server)
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
	err = c.authorizer(ctx, a, meta.Servers, s.OAuth.MetadataURL)
	if errors.Is(err, ErrNoLogin) {
		err = ch.noLogin(s)
	}
	return a, err
}

// resource returns the server's own metadata, from where the refusal says, or from the well-known
// places. Without any, the server's origin authorizes for itself (MCP 2025-03-26).
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
		switch {
		case err != nil:
			return m, err
		case !found:
			continue
		case !covers(m.Resource, server):
			return m, errors.New("the server's metadata is for another resource; its tokens are not asked for")
		case len(m.Servers) == 0:
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

// covers reports whether a resource identifier is the server's URL, or a path above it at the same
// origin.
func covers(resource string, server *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || !sameOrigin(r, server) || r.Fragment != "" {
		return false
	}
	above := strings.TrimSuffix(r.EscapedPath(), "/")
	return server.EscapedPath() == above || strings.HasPrefix(server.EscapedPath(), above+"/")
}

// authorizer reads the metadata of the first authorization server that has any.
func (c *Client) authorizer(ctx context.Context, a *authority, issuers []string, configured string) error {
	var m serverMetadata
	if configured != "" {
		if _, err := endpoint(configured, a.server); err != nil {
			return fmt.Errorf("the configured address of the authorization server's metadata can't be used: %w", err)
		}
		found, err := c.get(ctx, configured, a.server, &m)
		if err != nil || !found {
			return errors.Join(errors.New("there is no metadata at the configured address of the authorization "+
				"server's"), err)
		}
		return a.take(m, m.Issuer)
	}
	for _, issuer := range issuers[:min(len(issuers), 5)] {
		u, err := endpoint(issuer, a.server)
		if err != nil {
			return fmt.Errorf("the server names an authorization server that can't be used: %w", err)
		}
		for _, place := range metadataPlaces(u) {
			if found, err := c.get(ctx, place, a.server, &m); err != nil {
				return err
			} else if found {
				return a.take(m, issuer)
			}
		}
	}
	return ErrNoLogin
}

// metadataPlaces returns where an issuer's metadata may be, in the order to try (RFC 8414, 3.1, and
// OpenID Connect's two).
func metadataPlaces(issuer *url.URL) []string {
	host, path := hostOf(issuer), strings.TrimSuffix(issuer.EscapedPath(), "/")
	places := []string{
		host + "/.well-known/oauth-authorization-server" + path,
		host + "/.well-known/openid-configuration" + path,
	}
	if path != "" {
		places = append(places, host+path+"/.well-known/openid-configuration")
	}
	return places
}

// take checks an authorization server's metadata and keeps what a login needs.
func (a *authority) take(m serverMetadata, issuer string) error {
	switch {
	case m.Issuer == "" || strings.TrimSuffix(m.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
		return errors.New("the authorization server's metadata is of another issuer than it was asked for (RFC " +
			"8414, 3.3)")
	case !slices.Contains(m.Challenges, "S256"):
		return errors.New("the authorization server doesn't say that it supports PKCE with S256, " +
			"without which mcp-bridge doesn't log in")
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
		if _, err := endpoint(e.value, a.server); err != nil {
			return fmt.Errorf("the authorization server's %s can't be used: %w", e.name, err)
		}
	}
	a.serverMetadata = m
	return nil
}
