// Package identity finds out who sends an HTTP request: by a token that the bridge's operator has
// made (Tokens), or by a JWT of an issuer that the operator trusts (Issuer). The bridge only checks
// what it is given: it is a resource server, has no login and forwards no token.
//
// A request's sender is a principal. The name in a token file is one as it stands; the subject of a
// JWT has a prefix, which no name in a file can have, so that the two never mean each other.
package identity

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	// jwtPrefix stands before the subject of a JWT in its principal.
	jwtPrefix = "jwt:"

	// maxBearer bounds a token of either kind, in bytes.
	maxBearer = 8 << 10

	wellKnown = "/.well-known/oauth-protected-resource"
)

// A Refusal says why a request isn't answered.
type Refusal struct {
	Status    int    // of the HTTP response
	Challenge string // its WWW-Authenticate header; empty for none
	Message   string // says nothing that helps to guess a token
}

func (r *Refusal) Error() string { return r.Message }

// Authenticator names the principal of each request. At least one of Tokens and Issuer is set. It
// is safe for concurrent use.
type Authenticator struct {
	Tokens *Tokens // nil: no tokens of the operator's are taken
	Issuer *Issuer // nil: no JWTs are taken

	// Before is the principal of all requests while there is no Issuer and there never was a file of
	// Tokens; empty for none. Such requests aren't asked for a token.
	Before string
}

// Asks reports whether requests must have a token. Once they must, that stays so, also where the
// file of tokens goes. It is false for a nil a.
func (a *Authenticator) Asks() bool {
	return a != nil && (a.Issuer != nil || a.Before == "" || a.Tokens.Begun())
}

// Authenticate returns who sends a request. The error is a *Refusal. It reads the headers alone.
func (a *Authenticator) Authenticate(r *http.Request) (principal string, err error) {
	if !a.Asks() {
		return a.Before, nil
	}
	token, bad := bearer(r.Header)
	if bad != nil {
		return "", a.refuse(bad.code, bad.text)
	}
	if a.Tokens != nil && strings.HasPrefix(token, tokenPrefix) {
		name, err := a.Tokens.Find(token)
		switch {
		case errors.Is(err, ErrNoToken):
			return "", a.refuse("invalid_token",
				"the token isn't one of this bridge's: it was revoked, or belongs to another bridge")
		case err != nil:
			return "", &Refusal{Status: http.StatusServiceUnavailable,
				Message: "this bridge can't read its tokens now; its log says why"}
		}
		return name, nil
	}
	if a.Issuer == nil {
		return "", a.refuse("invalid_token", "the token isn't one of this bridge's")
	}
	subject, err := a.Issuer.Verify(r.Context(), token)
	switch {
	case errors.As(err, new(*UnavailableError)):
		return "", &Refusal{Status: http.StatusServiceUnavailable,
			Message: "the keys of the token's issuer can't be had now; try again later"}
	case err != nil:
		return "", a.refuse("invalid_token", err.Error())
	}
	return jwtPrefix + subject, nil
}

// refuse returns a Refusal with the challenge that says how to get a token, where that can be said.
func (a *Authenticator) refuse(code, why string) *Refusal {
	challenge := `Bearer realm="mcp-bridge"`
	if a.Issuer != nil {
		challenge = `Bearer resource_metadata="` + a.Issuer.metadataURL() + `"`
	}
	if code != "" { // a request without a token gets no error code (RFC 6750, section 3.1)
		challenge += `, error="` + code + `"`
	}
	return &Refusal{Status: http.StatusUnauthorized, Challenge: challenge, Message: why}
}

// bearerError says what is wrong with the Authorization header.
type bearerError struct{ code, text string }

// bearer returns the token of the Authorization header.
func bearer(h http.Header) (string, *bearerError) {
	given := h.Values("Authorization")
	switch {
	case len(given) == 0:
		return "", &bearerError{"", "this bridge wants to know who you are: send Authorization: Bearer and a token"}
	case len(given) > 1:
		return "", &bearerError{"invalid_request", "there is more than one Authorization header; send one"}
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	token = strings.Trim(token, " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", &bearerError{"", "the Authorization header must be Bearer and a token"}
	case token == "" || len(token) > maxBearer || strings.ContainsFunc(token, notOfToken):
		return "", &bearerError{"invalid_request", "the Authorization header holds no token that can be one"}
	}
	return token, nil
}

// notOfToken reports whether a bearer token can't have a character (RFC 6750, section 2.1).
func notOfToken(c rune) bool {
	return (c < 'a' || 'z' < c) && (c < 'A' || 'Z' < c) && (c < '0' || '9' < c) &&
		!strings.ContainsRune("-._~+/=", c)
}

// WellKnown returns what answers requests below /.well-known/: with the metadata of RFC 9728, which
// says where tokens for this bridge are to be had. It is nil without an issuer.
func (a *Authenticator) WellKnown() http.Handler {
	if a == nil || a.Issuer == nil {
		return nil
	}
	body, _ := json.Marshal(map[string]any{ // strings can't fail
		"resource":                 a.Issuer.cfg.Audience,
		"authorization_servers":    []string{a.Issuer.cfg.URL},
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "MCP Bridge",
	})
	paths := metadataPaths(a.Issuer.cfg.Audience)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(paths, r.URL.Path) {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*") // it is public, and clients in browsers look for it
		switch r.Method {
		case http.MethodOptions:
			h.Set("Access-Control-Allow-Methods", "GET, HEAD")
			h.Set("Access-Control-Allow-Headers", "*") // such as the protocol's version
			h.Set("Access-Control-Max-Age", "3600")
			w.WriteHeader(http.StatusNoContent)
		case http.MethodGet, http.MethodHead:
			h.Set("Content-Type", "application/json")
			h.Set("Cache-Control", "max-age=3600")
			_, _ = w.Write(body)
		default:
			h.Set("Allow", "GET, HEAD, OPTIONS")
			http.Error(w, "the metadata can only be read", http.StatusMethodNotAllowed)
		}
	})
}

// metadataPaths returns where the metadata of a resource is looked for: its well-known path, and
// that with the resource's own path behind it.
func metadataPaths(resource string) []string {
	paths := []string{wellKnown}
	if u, err := url.Parse(resource); err == nil {
		if path := strings.TrimSuffix(u.Path, "/"); path != "" {
			paths = append(paths, wellKnown+path)
		}
	}
	return paths
}
