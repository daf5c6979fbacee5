// Package auth finds out who sends a request over HTTP: by tokens that the user makes and revokes,
// or by those of an authorization server.
package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/identity"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
)

// New returns what finds out who sends a request over HTTP; nil where that can't be said. Without a
// setting no token is asked for until there is a file of them; from then on one is, even if all
// were revoked.
func New(c settings.Settings, log *slog.Logger) (*identity.Authenticator, error) {
	issuer, err := c.Issuer(log)
	if err != nil {
		return nil, exit.Usage(err)
	}
	a := &identity.Authenticator{Tokens: c.Tokens(log), Issuer: issuer}
	if c.HTTPTokens == "" {
		a.Before = bridge.Local
	}
	switch {
	case a.Tokens == nil && a.Issuer == nil:
		return nil, nil
	case a.Tokens == nil || !a.Asks():
		return a, nil
	}
	all, err := a.Tokens.List()
	if err == nil && len(all) == 0 && a.Issuer == nil {
		log.Warn("no token was made yet, so no client is let in; make one with mcp-bridge token add NAME",
			"file", a.Tokens.Path())
	}
	return a, err
}

// lookEvery is how often it is looked whose tokens are good, to remove the sandboxes of others.
const lookEvery = 30 * time.Second

// RemoveRevoked removes the sandboxes of principals that have had no token at two looks, until ctx
// ends: who gets another token of the same name meanwhile keeps them. A nil Registry has none.
func RemoveRevoked(ctx context.Context, t *identity.Tokens, all *sandboxes.Registry, log *slog.Logger) {
	if t == nil || all == nil {
		return
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var before, kept []string // names at the look before, and those whose sandboxes were last left
	known, looked := false, false
	for {
		names, ok := t.Names()
		good := slices.Compact(slices.Sorted(slices.Values(slices.Concat(before, names))))
		if ok && known && (!looked || !slices.Equal(good, kept)) {
			gone := func(owner string) bool { return t.MayName(owner) && !slices.Contains(good, owner) }
			if n := all.RemoveOf(ctx, gone, "its owner's token was revoked"); n > 0 {
				log.Info("sandboxes were removed, since their owners have no token any more", "sandboxes", n)
			}
			kept, looked = good, true
		}
		before, known = names, ok
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Clients says who may connect, for a person.
func Clients(a *identity.Authenticator) string {
	switch {
	case !a.Asks():
		return "all programs of this machine"
	case a.Issuer == nil:
		return "who has a token of " + a.Tokens.Path()
	case a.Tokens == nil:
		return "who has a token of " + a.Issuer.URL()
	}
	return fmt.Sprintf("who has a token of %s, or of %s", a.Issuer.URL(), a.Tokens.Path())
}

// Func returns a's answers in the words of the transport; nil where there is nothing by
// which clients could say who they are. It logs that a begins to ask.
func Func(a *identity.Authenticator, log *slog.Logger) func(*http.Request) (string, error) {
	if a == nil {
		return nil
	}
	var begins sync.Once
	if a.Asks() {
		begins.Do(func() {})
	}
	return func(r *http.Request) (string, error) {
		principal, err := a.Authenticate(r)
		if a.Asks() {
			begins.Do(func() {
				log.Warn("a token was made: from now on each request needs one", "clients", Clients(a))
			})
		}
		if refused, ok := errors.AsType[*identity.Refusal](err); ok {
			err = &streamable.Refusal{
				Status: refused.Status, WWWAuthenticate: refused.Challenge, Message: refused.Message,
			}
		}
		return principal, err
	}
}
