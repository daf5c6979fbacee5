package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Grant is what one login has given. All of it except Server and Scope is secret or useless to
// others.
type Grant struct {
	Server string `json:"server"` // its name
	URL    string `json:"url"`

	Resource string `json:"resource"`
	Issuer   string `json:"issuer"`
	Token    string `json:"token_endpoint"`
	Revoke   string `json:"revocation_endpoint,omitempty"`

	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"`
	AuthMethod   string `json:"auth_method"` // none, client_secret_basic or client_secret_post

	AccessToken  string    `json:"access_token"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Expires      time.Time `json:"expires"` // zero if the server doesn't say
	Scope        string    `json:"scope,omitempty"`
}

// String names the login and tells nothing secret.
func (g Grant) String() string { return fmt.Sprintf("the login to %q", g.Server) }

// soon is how long before its end a token is renewed: a request may be under way for a while.
const soon = 30 * time.Second

// usable reports whether the access token can be sent at that time.
func (g Grant) usable(now time.Time) bool {
	return g.AccessToken != "" && (g.Expires.IsZero() || now.Add(soon).Before(g.Expires))
}

// config returns the grant's client and endpoints. The authorization endpoint is known only in a
// login.
func (g Grant) config(authorize, redirect string) *oauth2.Config {
	style := oauth2.AuthStyleInParams // without a secret it sends the client's ID alone
	if g.AuthMethod == basicAuth {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{ClientID: g.ClientID, ClientSecret: g.ClientSecret, RedirectURL: redirect,
		Endpoint: oauth2.Endpoint{AuthURL: authorize, TokenURL: g.Token, AuthStyle: style}}
}

// parameters returns additional parameters of a request to an authorization server. Empty values
// are left out.
func parameters(values map[string]string) (opts []oauth2.AuthCodeOption) {
	for name, v := range values {
		if v != "" {
			opts = append(opts, oauth2.SetAuthURLParam(name, v))
		}
	}
	return opts
}

// exchange fetches tokens for the user's agreement and puts them into g.
func (c *Client) exchange(ctx context.Context, g *Grant, code, verifier, redirect string) error {
	return c.fetch(ctx, g, redirect, code, map[string]string{"code_verifier": verifier})
}

// refresh renews the tokens in g. An *Error with the code invalid_grant says that the login is
// over. x/oauth2's own refresh can't name the resource (RFC 8707), so this is an exchange of
// another grant type; its code is empty, which counts as absent (RFC 6749, 3.2).
func (c *Client) refresh(ctx context.Context, g *Grant) error {
	return c.fetch(ctx, g, "", "",
		map[string]string{"grant_type": "refresh_token", "refresh_token": g.RefreshToken})
}

func (c *Client) fetch(ctx context.Context, g *Grant, redirect, code string, more map[string]string) error {
	server, err := url.Parse(g.URL)
	if err != nil {
		return errors.New("the server's URL can't be used")
	}
	secrets := []string{code, more["code_verifier"], g.RefreshToken, g.ClientSecret}
	more["resource"] = g.Resource
	client := c.to(server)
	client.Transport = lenient{client.Transport}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client) // the library takes it by no other way
	t, err := g.config("", redirect).Exchange(ctx, code, parameters(more)...)
	if err != nil {
		return tokenError(err, g.Token, secrets)
	}
	switch {
	case !strings.EqualFold(t.TokenType, "Bearer"):
		return errors.New("the token endpoint gave a token that is not of type Bearer")
	case strings.ContainsFunc(t.AccessToken, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return errors.New("the token endpoint gave a token that no header can carry")
	}
	g.AccessToken, g.Expires = t.AccessToken, time.Time{}
	if !t.Expiry.IsZero() {
		g.Expires = t.Expiry.UTC().Truncate(time.Second)
	}
	if t.RefreshToken != "" { // else the old one stays good (RFC 6749, 6)
		g.RefreshToken = t.RefreshToken
	}
	if scope, _ := t.Extra("scope").(string); scope != "" {
		g.Scope = plain(scope)
	}
	return nil
}

// lenient is a transport for answers of token endpoints. Servers have been seen to send expires_in
// as a fraction or in words, for which x/oauth2 refuses the token. It becomes a whole number, or is
// left out: without it a token is renewed when it is refused.
type lenient struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l lenient) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) == nil && fields["expires_in"] != nil {
		said := strings.Trim(string(fields["expires_in"]), `" `)
		delete(fields, "expires_in")
		if seconds, err := strconv.ParseFloat(said, 64); err == nil && seconds >= 1 {
			fields["expires_in"] = strconv.AppendInt(nil, int64(min(seconds, math.MaxInt32)), 10)
		}
		if body, err = json.Marshal(fields); err != nil {
			return nil, err
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// tokenError returns why the token endpoint gave no token, without the secrets that we had sent.
func tokenError(err error, endpoint string, secrets []string) error {
	var refused *oauth2.RetrieveError
	var failed *url.Error
	switch {
	case errors.As(err, &refused):
		return refusal(refused.Response.StatusCode, refused.ErrorCode, refused.ErrorDescription, secrets)
	case !errors.As(err, &failed):
		return errors.New(plain(redact(strings.TrimPrefix(err.Error(), "oauth2: "), secrets)))
	}
	if u, bad := url.Parse(endpoint); bad == nil {
		return fmt.Errorf("asking %s: %w", hostOf(u), failed.Err)
	}
	return failed.Err
}

// The ways in which a client authenticates.
const (
	noAuth    = "none"
	basicAuth = "client_secret_basic"
	postAuth  = "client_secret_post"
)

// authMethod returns how a client with or without a secret authenticates.
func authMethod(secret, chosen string, supported []string) string {
	switch {
	case secret == "":
		return noAuth
	case chosen == basicAuth || chosen == postAuth:
		return chosen
	case supported == nil || slices.Contains(supported, basicAuth):
		return basicAuth
	default:
		return postAuth
	}
}

// register registers g's client for one login, with the exact redirect URI: not all servers allow
// another port (RFC 8252, 7.3).
func (c *Client) register(ctx context.Context, a *authority, g *Grant, redirect string) error {
	if a.Register == "" {
		return errors.New("the authorization server doesn't register programs by itself; register one there " +
			"by hand, and write its client id into the server's entry (oauth: clientId, callbackPort)")
	}
	ask := map[string]any{
		"client_name": "mcp-bridge", "redirect_uris": []string{redirect}, "response_types": []string{"code"},
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_method": noAuth, "application_type": "native",
	}
	if g.Scope != "" {
		ask["scope"] = g.Scope
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	answer, err := c.post(ctx, a.Register, "application/json", string(body), a.server, &Grant{})
	var got struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Method string `json:"token_endpoint_auth_method"`
	}
	if err == nil && (json.Unmarshal(answer, &got) != nil || got.ID == "") {
		err = errors.New("its answer holds no client id")
	}
	if err != nil {
		return fmt.Errorf("registering with the authorization server: %w", err)
	}
	if got.Method == noAuth {
		got.Secret = ""
	}
	g.ClientID, g.ClientSecret, g.AuthMethod = got.ID, got.Secret, authMethod(got.Secret, got.Method, a.Methods)
	return nil
}

// revoke tells the authorization server that the login is over (RFC 7009), if it takes that.
func (c *Client) revoke(ctx context.Context, g Grant) error {
	if g.Revoke == "" {
		return nil
	}
	form := url.Values{"token": {g.RefreshToken}, "token_type_hint": {"refresh_token"}}
	if g.RefreshToken == "" {
		form = url.Values{"token": {g.AccessToken}, "token_type_hint": {"access_token"}}
	}
	if g.AuthMethod != basicAuth {
		form.Set("client_id", g.ClientID)
	}
	if g.AuthMethod == postAuth {
		form.Set("client_secret", g.ClientSecret)
	}
	server, err := url.Parse(g.URL)
	if err != nil {
		return errors.New("the server's URL can't be used")
	}
	_, err = c.post(ctx, g.Revoke, "application/x-www-form-urlencoded", form.Encode(), server, &g)
	return err
}
