package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
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
// memory as a run.
func (c config) maxSandboxes(what purpose) int {
	switch {
	case what != serving:
		return 0
	case c.Sandboxes == autoKept:
		return config{Memory: c.Memory}.maxConcurrent()
	}
	return int(c.Sandboxes)
}

// guarded returns what runs code.
func (p *parts) guarded() guarded { return guarded{p.sandbox, p.guard, p.approvals} }

// sandboxes returns the sandboxes that last, nil for none.
func (p *parts) sandboxes(what purpose) *sandboxes.Registry {
	most := p.cfg.maxSandboxes(what)
	if most == 0 {
		return nil
	}
	g := p.guarded()
	return sandboxes.New(sandboxes.Config{
		Keep: func(ctx context.Context, r sandbox.KeepRequest) (sandboxes.Guest, error) {
			if err := g.begin(); err != nil {
				return nil, err
			}
			k, err := g.Keep(ctx, r)
			if err != nil { // no interface that holds nil
				return nil, err
			}
			p.console.open(p)
			return k, nil
		},
		Idle: time.Duration(p.cfg.SandboxIdle), MaxAge: time.Duration(p.cfg.SandboxMaxAge), Most: most,
		LongestCall: time.Duration(p.cfg.MaxTimeout) + time.Duration(p.cfg.QueueTimeout) + offClock,
		Limits:      p.sandboxConfig(what).Limits,
	})
}
