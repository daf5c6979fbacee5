package approvals

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const heldReason = "it is new since the bridge started, or has changed, where code could have written it, " +
	"or a bridge that knew it was killed; and you have not said yes to it"

// reason returns why servers are held.
func (a *Approvals) reason() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why != "" {
		return a.why + ", so code could have written it, and you have not said yes to it"
	}
	return heldReason
}

// Refuse returns why a server may not be started, or nil. A model reads it.
func (a *Approvals) Refuse(s discovery.Server) error {
	if !a.Held(s) {
		return nil
	}
	return errors.New(a.reason() + "; the user has to approve it at a terminal (mcp-bridge servers " +
		"approve, with its name, or with --all for all that are held)")
}

// HeldNames returns the names of the servers that are held.
func (a *Approvals) HeldNames(servers []discovery.Server) (names []string) {
	for _, s := range servers {
		if a.Held(s) {
			names = append(names, s.Name)
		}
	}
	return names
}

// WithoutHeld makes problems of the servers that are held. next returns how to approve one.
func (a *Approvals) WithoutHeld(c discovery.Catalog, next func(discovery.Server) string) discovery.Catalog {
	var used []discovery.Server
	problems := slices.Clone(c.Problems)
	for _, s := range c.Servers {
		if !a.Held(s) {
			used = append(used, s)
			continue
		}
		problems = append(problems, discovery.Problem{Source: s.Source, Server: s.Name,
			State: discovery.New, Reason: a.reason(), Next: next(s)})
	}
	c.Servers, c.Problems = used, problems
	return c
}

// Untrusted returns that code may have written a policy.
func Untrusted(path string) *text.HintError {
	return &text.HintError{
		Err: fmt.Errorf("the policy %s isn't followed: it was changed while code was run, so code may have "+
			"written it, and you have not said yes to it", path),
		Next: "read the file, and see with mcp-bridge policy check what is in it; to follow it, run with " +
			"MCP_BRIDGE_POLICY set to it: mcp-bridge policy approve; until then a bridge that runs takes over only " +
			"what is stricter in it",
	}
}
