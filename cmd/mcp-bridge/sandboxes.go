package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/secrets"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/console"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// most returns how many sandboxes that last there are at a time.
func (p *parts) most(what purpose) int {
	if !what.serves() {
		return 0
	}
	return p.cfg.MaxSandboxes()
}

// sandboxes returns the sandboxes that last, nil for none.
func (p *parts) sandboxes(what purpose) (*sandboxes.Registry, error) {
	most := p.most(what)
	if most == 0 {
		return nil, nil
	}
	saving, err := p.hibernation()
	if err != nil {
		return nil, err
	}
	g, cfg := guarded{p.sandbox, p.guard, p.approvals}, p.sandboxConfig(what)
	return sandboxes.New(sandboxes.Config{
		Keep: func(ctx context.Context, r sandbox.KeepRequest) (sandboxes.Guest, error) {
			if err := g.begin(); err != nil {
				return nil, err
			}
			k, err := g.Keep(ctx, r)
			if err != nil { // no interface that holds nil
				return nil, err
			}
			p.console.Open(console.Config{State: settings.StateDir(), Serve: p.bridge.ServeUser,
				File: p.guard.File, Log: p.log})
			return k, nil
		},
		Idle: time.Duration(p.cfg.SandboxIdle), MaxAge: time.Duration(p.cfg.SandboxMaxAge), Most: most,
		LongestCall: cfg.LongestCall(), Limits: cfg.Limits, Suffix: what.replica(p.cfg).Suffix(),
		Hibernation: saving,
	}), nil
}

// hibernation returns how sandboxes are saved before they end; nil if they aren't.
func (p *parts) hibernation() (*sandboxes.Hibernation, error) {
	if p.cfg.Hibernate == "" {
		return nil, nil
	}
	store, err := hibernation.Open(hibernation.Config{Dir: filepath.Clean(p.cfg.Hibernate),
		Key: func(mayMake bool) ([]byte, error) { return hibernationKey(p.log, mayMake) }, Log: p.log})
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("MCP_BRIDGE_HIBERNATE: %w", err))
	}
	return &sandboxes.Hibernation{Store: store, Log: p.log, Environment: p.chooser.Named}, nil
}

// hibernationKey returns the user's key of saved sandboxes. If there is no key yet it makes one, or
// returns hibernation.ErrNoKey.
func hibernationKey(log *slog.Logger, mayMake bool) ([]byte, error) {
	store := keptIn("keys")
	if store == nil {
		return nil, settings.ErrNoPlace
	}
	const name = "hibernation"
	key, in, err := store.Key(context.Background(), name, hibernation.KeySize, mayMake)
	switch {
	case errors.Is(err, secrets.ErrNone):
		return nil, hibernation.ErrNoKey
	case err == nil && in == secrets.InFile:
		log.Warn("the key of saved sandboxes is in a file, since there is no keyring that takes it",
			"file", store.File(secrets.Account(name)))
	}
	return key, err
}
