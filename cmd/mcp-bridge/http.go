package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/identity"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/listen"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
)

// authenticator returns what finds out who sends a request over HTTP; nil where that can't be said.
// Without a setting no token is asked for until there is a file of them; from then on one is, even
// if all were revoked.
func authenticator(c settings.Settings, log *slog.Logger) (*identity.Authenticator, error) {
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

// lookAtTokens is how often it is looked whose tokens are good, to remove the sandboxes of others.
const lookAtTokens = 30 * time.Second

// removeRevoked removes the sandboxes of principals that have had no token at two looks, until ctx
// ends: who gets another token of the same name meanwhile keeps them. A nil Registry has none.
func removeRevoked(ctx context.Context, t *identity.Tokens, all *sandboxes.Registry, log *slog.Logger) {
	if t == nil || all == nil {
		return
	}
	tick := time.NewTicker(lookAtTokens)
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

// letIn says who may connect, for a person.
func letIn(a *identity.Authenticator) string {
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

// authenticate returns a's answers in the words of the transport; nil where there is nothing by
// which clients could say who they are. It logs that a begins to ask.
func authenticate(a *identity.Authenticator, log *slog.Logger) func(*http.Request) (string, error) {
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
			begins.Do(func() { log.Warn("a token was made: from now on each request needs one", "clients", letIn(a)) })
		}
		var refused *identity.Refusal
		if errors.As(err, &refused) {
			err = &streamable.Refusal{
				Status: refused.Status, WWWAuthenticate: refused.Challenge, Message: refused.Message,
			}
		}
		return principal, err
	}
}

// listen serves over HTTP until ctx ends.
func (p *parts) listen(ctx context.Context, l *listen.Listener) error {
	if p.cfg.UpstreamRoots != "none" {
		return exit.Usage(errors.New("MCP_BRIDGE_UPSTREAM_ROOTS=client is for stdio: over HTTP clients share " +
			"servers, and one would have the directories of one client for all of them; leave it out"))
	}
	who, err := authenticator(p.cfg, p.log)
	if err != nil {
		return err
	}
	socket, err := l.Listen(ctx, who.Asks())
	if err != nil {
		return err
	}
	if len(p.cfg.Config) == 0 {
		p.log.Warn("MCP_BRIDGE_CONFIG is not set, so code has no servers: over HTTP no others are used",
			"next", "set it to a file that names servers, and start the bridge again")
	} else {
		p.log.Warn("over HTTP only the servers of MCP_BRIDGE_CONFIG are used, and all clients act with the " +
			"credentials that are configured for them")
	}
	p.log.Info("listening", "url", l.Scheme()+"://"+socket.Addr().String()+streamable.Path,
		"clients", letIn(who))
	if l.Unnamed() && p.cfg.HTTPAudience == "" {
		p.log.Warn("clients get 403 that reach the bridge by another name or address than those of loopback: add " +
			"theirs with --allow-host")
	}
	hosts := l.Names()
	if own, err := url.Parse(p.cfg.HTTPAudience); err == nil && own.Host != "" { // by which clients know it
		hosts = append(hosts, own.Host)
	}
	if who != nil {
		ctx, end := context.WithCancel(ctx)
		looked := make(chan struct{})
		go func() { defer close(looked); removeRevoked(ctx, who.Tokens, p.lasting, p.log) }()
		defer func() { end(); <-looked }()
	}
	return streamable.New(streamable.Config{
		Clients: p.bridge.Clients(), Hosts: hosts, Origins: l.Origins, Metrics: l.Metrics, Log: p.log,
		Authenticate: authenticate(who, p.log), WellKnown: who.WellKnown(), Replica: p.cfg.Replica,
		DrainTime: time.Duration(p.cfg.MaxTimeout), Proxied: l.Proxied,
		Lost: p.driver.Lost,
	}).Serve(ctx, socket, l.Cert, l.Key)
}
