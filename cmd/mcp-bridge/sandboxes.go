package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/secrets"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/console"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// tools are the names of tools that clients have.
type tools []string

// Decode implements envconfig.Decoder.
func (t *tools) Decode(v string) (err error) {
	*t, err = bridge.ToolSet(v)
	return err
}

// kept is a number of sandboxes that last; autoKept for as many as memory holds.
type kept int

const (
	autoKept = -1
	mostKept = 256
)

// Decode implements envconfig.Decoder.
func (n *kept) Decode(v string) error {
	if v == "auto" {
		*n = autoKept
		return nil
	}
	i, err := strconv.Atoi(v)
	if err != nil || i < 0 || i > mostKept {
		return fmt.Errorf("it must be a number from 0 to %d, or auto", mostKept)
	}
	*n = kept(i)
	return nil
}

// maxSandboxes returns how many sandboxes that last there are at a time. Each may take as much
// memory as a run; where memory decides, half of it is theirs at most.
func (c config) maxSandboxes(what purpose) int {
	switch {
	case !what.serves():
		return 0
	case c.Sandboxes == autoKept:
		return max(1, c.fit()/2)
	}
	return int(c.Sandboxes)
}

// maxContainers returns how many containers are alive at a time, except for those that are warm. As
// many sandboxes as memory holds are counted among those of runs, of which one is left at least; a
// number of them comes beside the runs.
func (c config) maxContainers(what purpose) int {
	runs, kept := c.maxConcurrent(), c.maxSandboxes(what)
	if c.Sandboxes != autoKept || kept == 0 {
		return runs + kept
	}
	return max(runs, c.fit(), kept+1)
}

// sandboxes returns the sandboxes that last, nil for none.
func (p *parts) sandboxes(what purpose) (*sandboxes.Registry, error) {
	most := p.cfg.maxSandboxes(what)
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
			p.console.Open(console.Config{State: stateDir(), Serve: p.bridge.ServeUser,
				File: p.guard.File, Log: p.log})
			return k, nil
		},
		Idle: time.Duration(p.cfg.SandboxIdle), MaxAge: time.Duration(p.cfg.SandboxMaxAge), Most: most,
		LongestCall: cfg.LongestCall(), Limits: cfg.Limits, Suffix: p.cfg.replica(what).Suffix(),
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
	dir := stateDir()
	if dir == "" {
		return nil, errors.New("there is no place to keep it; set HOME or XDG_STATE_HOME")
	}
	const name = "hibernation"
	store := &secrets.Store{Dir: filepath.Join(dir, "keys"), Keyring: secrets.SystemKeyring()}
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
