package bridge

import (
	"context"
	"errors"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// What calls of run_python share that name no sandbox.
const (
	StateNone    = "none"    // nothing: each runs in a container of its own
	StateSession = "session" // one sandbox for each client, which ends with its connection
)

const (
	sandboxName = "sandbox" // the argument of run_python

	// NewSandbox is the value of that argument which begins a sandbox.
	NewSandbox = "new"
)

var _ Runner = (*sandboxes.Call)(nil)

// kept returns what run_python's definition says of what is kept.
func kept(cfg Config) catalog.Kept {
	switch {
	case cfg.Sandboxes == nil:
		return catalog.KeptNothing
	case cfg.State == StateSession:
		return catalog.KeptAlways
	}
	return catalog.KeptInSandbox
}

// enter returns the run's turn in the sandbox that it is to use, nil for a container of its own.
// Runs in one sandbox have their turns in order of arrival.
func (r *run) enter(ctx context.Context) (*sandboxes.Call, error) {
	all, id, owner := r.bridge.cfg.Sandboxes, r.args.sandbox, r.request.owner()
	settings := sandboxes.Settings{Principal: r.request.share()}
	shares := r.bridge.cfg.State == StateSession && id == ""
	switch {
	case id == NewSandbox:
		return all.Begin(owner, settings)
	case id == "" && !shares:
		return nil, nil
	}
	turn := r.request.Turn()
	if err := turn.Wait(ctx); err != nil {
		return nil, err
	}
	if shares {
		return all.Shared(ctx, owner, r.request.client.own, settings, turn.Pass)
	}
	return all.Enter(ctx, owner, id, turn.Pass)
}

// endSandboxes ends the sandbox of the session's calls that name none, and all of its owner's if it
// is the only session of that.
func (s *session) endSandboxes(alone bool) {
	all := s.bridge.cfg.Sandboxes
	if all == nil || s.shared {
		return
	}
	all.EndShared(s.own)
	if alone {
		all.EndAll(s.owner)
	}
}

// owner returns whose sandboxes the request may use.
func (r request) owner() string {
	if r.client == nil {
		return ""
	}
	return r.client.owner
}

// goneToCode returns what a caller of run_python is told of a sandbox that isn't there.
func goneToCode(err error) error {
	var gone *sandboxes.GoneError
	if !errors.As(err, &gone) {
		return err
	}
	return args.Errorf("%v. Nothing was run. Pass sandbox %q and define again what you need; %s", gone,
		NewSandbox, gone.Others())
}

// stateOf returns what the result says of the sandbox; nil for a container of the call's own.
func stateOf(box *sandboxes.Call, r sandbox.Result) *output.Sandbox {
	if box == nil || r.Kept == nil {
		return nil
	}
	s := &output.Sandbox{
		ID: box.ID(), KeptState: *r.Kept, New: box.Fresh, Ended: box.Ended, Before: box.Before, Shared: box.Shared,
		Woken: box.Woken, Running: box.Running(),
	}
	if box.Woken {
		s.Missing = text.Safe(box.Missing())
	}
	return s
}
