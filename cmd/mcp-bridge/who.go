package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/identity"
	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
)

// tokens returns the tokens of clients over HTTP; nil if there is no place for them.
func (c config) tokens(log *slog.Logger) *identity.Tokens {
	path := c.HTTPTokens
	if path == "" {
		dir := stateDir()
		if dir == "" {
			return nil
		}
		path = filepath.Join(dir, "http-tokens")
	}
	return identity.OpenTokens(filepath.Clean(path), log, bridge.Local)
}

// issuer returns the authorization server whose JWTs are taken; nil for none.
func (c config) issuer(log *slog.Logger) (*identity.Issuer, error) {
	switch {
	case c.HTTPIssuer == "" && c.HTTPAudience == "":
		return nil, nil
	case c.HTTPIssuer == "" || c.HTTPAudience == "":
		return nil, errors.New("MCP_BRIDGE_HTTP_ISSUER and MCP_BRIDGE_HTTP_AUDIENCE are set together, or not at all: " +
			"who makes tokens, and the URL of this bridge that they are made for")
	}
	i, err := identity.NewIssuer(identity.IssuerConfig{URL: c.HTTPIssuer, Audience: c.HTTPAudience, Log: log})
	if err != nil {
		return nil, fmt.Errorf("MCP_BRIDGE_HTTP_ISSUER or MCP_BRIDGE_HTTP_AUDIENCE: %w", err)
	}
	return i, nil
}

// authenticator returns what finds out who sends a request over HTTP; nil where nobody has to say.
// Once there is a file of tokens, one is asked for, even if all were revoked.
func (c config) authenticator(log *slog.Logger) (*identity.Authenticator, error) {
	a := &identity.Authenticator{}
	var err error
	if a.Issuer, err = c.issuer(log); err != nil {
		return nil, usageError{err}
	}
	if t := c.tokens(log); t != nil && (c.HTTPTokens != "" || t.Exists()) {
		all, err := t.List()
		switch {
		case err != nil:
			return nil, err
		case len(all) == 0 && a.Issuer == nil:
			log.Warn("no token was made yet, so no client is let in; make one with mcp-bridge token add NAME",
				"file", t.Path())
		}
		a.Tokens = t
	}
	if a.Issuer == nil && a.Tokens == nil {
		return nil, nil
	}
	return a, nil
}

// authenticate returns a's answers in the words of the transport; nil where nobody has to say who
// they are.
func authenticate(a *identity.Authenticator) func(*http.Request) (string, error) {
	if a == nil {
		return nil
	}
	return func(r *http.Request) (string, error) {
		principal, err := a.Authenticate(r)
		var refused *identity.Refusal
		if errors.As(err, &refused) {
			err = &streamable.Refusal{Status: refused.Status, WWWAuthenticate: refused.Challenge, Message: refused.Message}
		}
		return principal, err
	}
}
