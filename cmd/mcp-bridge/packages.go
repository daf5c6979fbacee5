package main

import (
	"context"

	"github.com/mcp-bridge/mcp-bridge/bridge/packages"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// packages returns the chooser of environments for code.
func (p *parts) packages() *packages.Chooser {
	return packages.New(packages.Config{
		Source: p.environments(), Default: p.cfg.Env, Policy: p.policy.Packages(),
		Ready: func(ctx context.Context, progress runtime.Progress) error {
			if p.guard != nil { // a build starts containers
				if err := p.guard.Begin(); err != nil {
					return err
				}
			}
			_, _, err := p.sandbox.Look(ctx, progress)
			return err
		},
	})
}
