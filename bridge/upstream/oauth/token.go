package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Grant is what one login has given. All of it but Server and Scope is secret or useless to others.
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
	Expires      time.Time `json:"expires"` // zero where the server doesn't say
	Scope        string    `json:"scope,omitempty"`
	Obtained     time.Time `json:"obtained"`
}

// String tells nothing secret.
func (g Grant) String() string { return fmt.Sprintf("the login to %q", g.Server) }

// soon is how long before its end a token is renewed: a request may be under way for a while.
const soon = 30 * time.Second

// usable says whether the access token can be sent at that time.
func (g Grant) usable(now time.Time) bool {
	return g.AccessToken != "" && (g.Expires.IsZero() || now.Add(soon).Before(g.Expires))
}

// tokenAnswer is the token endpoint's answer.
type tokenAnswer struct {
	AccessToken  string          `json:"access_token"`
	TokenType    string          `json:"token_type"`
	ExpiresIn    json.RawMessage `json:"expires_in"` // a number, and from some servers a string
	RefreshToken string          `json:"refresh_token"`
	Scope        string          `json:"scope"`
}

// exchange fetches tokens for the user's agreement and puts them into g.
func (c *Client) exchange(ctx context.Context, g *Grant, code, verifier, redirect string) error {
	return c.tokens(ctx, g, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {redirect},
	})
}

// refresh renews the tokens in g. An *Error of code invalid_grant says that the login is over.
func (c *Client) refresh(ctx context.Context, g *Grant) error {
	return c.tokens(ctx, g, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.RefreshToken}})
}

func (c *Client) tokens(ctx context.Context, g *Grant, form url.Values) error {
	if g.Resource != "" {
		form.Set("resource", g.Resource)
	}
	body, err := c.form(ctx, g, g.Token, form)
	if err != nil {
		return err
	}
	var a tokenAnswer
	if json.Unmarshal(body, &a) != nil || a.AccessToken == "" {
		return errors.New("the token endpoint's answer holds no token")
	}
	if !strings.EqualFold(a.TokenType, "Bearer") {
		return errors.New("the token endpoint gave a token that is none of type Bearer")
	}
	if strings.ContainsFunc(a.AccessToken, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("the token endpoint gave a token that no header can carry")
	}
	now := time.Now()
	g.AccessToken, g.Obtained, g.Expires = a.AccessToken, now.UTC().Truncate(time.Second), time.Time{}
	if n, err := strconv.ParseFloat(strings.Trim(string(a.ExpiresIn), `"`), 64); err == nil && n > 0 && n < 1e9 {
		g.Expires = now.Add(time.Duration(n * float64(time.Second))).UTC().Truncate(time.Second)
	}
	if a.RefreshToken != "" { // else the old one stays good (RFC 6749, 6)
		g.RefreshToken = a.RefreshToken
	}
	if a.Scope != "" {
		g.Scope = plain(a.Scope)
	}
	return nil
}

// form posts to an endpoint as the grant's client.
func (c *Client) form(ctx context.Context, g *Grant, to string, form url.Values) ([]byte, error) {
	if g.AuthMethod != basicAuth {
		form.Set("client_id", g.ClientID)
	}
	if g.AuthMethod == postAuth {
		form.Set("client_secret", g.ClientSecret)
	}
	server, err := url.Parse(g.URL)
	if err != nil {
		return nil, errors.New("the server's URL can't be used")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("an endpoint of the authorization server can't be used")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if g.AuthMethod == basicAuth {
		req.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(g.ClientSecret))
	}
	status, _, body, err := c.do(req, server)
	if err != nil {
		return nil, err
	}
	if status/100 != 2 {
		return nil, refusal(status, body, form)
	}
	return body, nil
}

// refusal is an answer of failure, without whatever we have just sent.
func refusal(status int, body []byte, sent url.Values) error {
	var e struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &e) != nil || e.Error == "" || status/100 == 5 {
		return fmt.Errorf("the authorization server answered %d %s", status, http.StatusText(status))
	}
	for name, values := range sent {
		if slices.Contains([]string{"grant_type", "client_id", "resource", "redirect_uri", "scope"}, name) {
			continue
		}
		for _, v := range values {
			if v != "" {
				e.Error, e.Description = strings.ReplaceAll(e.Error, v, "***"), strings.ReplaceAll(e.Description, v, "***")
			}
		}
	}
	return &Error{Code: plain(e.Error), Description: plain(e.Description)}
}

// The ways of authenticating a client that there are.
const (
	noAuth    = "none"
	basicAuth = "client_secret_basic"
	postAuth  = "client_secret_post"
)

// authMethod is how a client with or without a secret shows who it is.
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

// registerClient has the authorization server make a client for one login, with its very redirect URI: not all servers
// allow for another port (RFC 8252, 7.3).
func (c *Client) registerClient(ctx context.Context, a *authority, redirect string, scope string) (id, secret, method string, err error) {
	if a.register == "" {
		return "", "", "", errors.New("the authorization server doesn't register programs by itself; register one there by hand, and write its client id into the server's entry (oauth: clientId, callbackPort)")
	}
	ask := map[string]any{
		"client_name": c.name, "redirect_uris": []string{redirect}, "grant_types": []string{"authorization_code", "refresh_token"},
		"response_types": []string{"code"}, "token_endpoint_auth_method": noAuth, "application_type": "native",
	}
	if scope != "" {
		ask["scope"] = scope
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return "", "", "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.register, bytes.NewReader(body))
	if err != nil {
		return "", "", "", errors.New("the registration endpoint can't be used")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	status, _, body, err := c.do(req, a.server)
	if err != nil {
		return "", "", "", err
	}
	if status/100 != 2 {
		return "", "", "", fmt.Errorf("registering with the authorization server: %w", refusal(status, body, nil))
	}
	var got struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Method string `json:"token_endpoint_auth_method"`
	}
	if json.Unmarshal(body, &got) != nil || got.ID == "" {
		return "", "", "", errors.New("registering with the authorization server: its answer holds no client id")
	}
	if got.Method == noAuth {
		got.Secret = ""
	}
	return got.ID, got.Secret, authMethod(got.Secret, got.Method, a.methods), nil
}

// revoke tells the authorization server that the login is over (RFC 7009), where it takes that.
func (c *Client) revoke(ctx context.Context, g Grant) error {
	if g.Revoke == "" {
		return nil
	}
	token, hint := g.RefreshToken, "refresh_token"
	if token == "" {
		token, hint = g.AccessToken, "access_token"
	}
	_, err := c.form(ctx, &g, g.Revoke, url.Values{"token": {token}, "token_type_hint": {hint}})
	return err
}
