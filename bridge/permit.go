package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Grants are what the user has allowed for good; *approvals.Approvals are. Its methods are used
// concurrently.
type Grants interface {
	// Granted returns the grant of this tool and definition.
	Granted(policy.Grant) (policy.Grant, bool)

	// Grant keeps one, and tells other bridges.
	Grant(policy.Grant) (told int, err error)
}

// permits are what one run may call. It is safe for concurrent use.
type permits struct {
	catalog *catalog.Catalog
	count   *policy.Run
	consent *consent
}

// permits returns those of a run that began with the catalog of a, even if servers change meanwhile.
func (b *Bridge) permits(a arguments, log *slog.Logger) *permits {
	ask := func(ctx context.Context, method string, params any) (json.RawMessage, error) {
		return askClient(ctx, policyAsks, method, params)
	}
	if a.ask != nil {
		ask = func(ctx context.Context, _ string, params any) (json.RawMessage, error) {
			defer sandbox.OffClock(ctx)() // the time that a person takes isn't the code's
			message, _ := params.(map[string]any)["message"].(string)
			yes, err := a.ask(ctx, message)
			if err != nil {
				return nil, err
			}
			return encode(map[string]any{"action": map[bool]string{true: "accept", false: "decline"}[yes]}), nil
		}
	}
	c := a.catalog
	return &permits{catalog: c, count: c.Policy().Run(), consent: newConsent(c.Definitions(), b.grants, ask, log)}
}

// tool says whether the run may call a tool with these arguments, for which it may ask the user. It is the last word on each call,
// whatever was listed before.
func (p *permits) tool(ctx context.Context, r *audit.Record, s catalog.Server, t upstream.Tool, args json.RawMessage) error {
	return p.decide(ctx, r, s, t, args, p.catalog.Judge(s.Name, t))
}

// method is the same for what isn't a tool.
func (p *permits) method(ctx context.Context, r *audit.Record, s catalog.Server, method string, args json.RawMessage) error {
	d, _ := p.catalog.JudgeMethod(s.Name, method)
	return p.decide(ctx, r, s, upstream.Tool{Name: method}, args, d)
}

func (p *permits) decide(ctx context.Context, r *audit.Record, s catalog.Server, t upstream.Tool, args json.RawMessage, d policy.Decision) error {
	judged(r, d)
	if d.Verdict == policy.Deny {
		return catalog.Denied(s.Name, t.Name, d)
	}
	if err := p.count.Count(p.catalog.Judged(s.Name, t.Name, nil), len(args)); err != nil {
		return &entrypoint.CallError{Code: entrypoint.CodeCallLimit, Message: fmt.Sprintf("tool %q of server %q: %v", t.Name, s.Name, err)}
	}
	if d.Verdict == policy.Ask {
		return p.consent.ask(ctx, s, t, args, d)
	}
	return nil
}

// GrantOf is what is kept when the user allows a tool for good: for this very definition of its server, which is what is started or
// connected to, with what and in which directory, and for what the server says of the tool. Where the definition is from doesn't count.
func GrantOf(s discovery.Server, t upstream.Tool) policy.Grant {
	return policy.Grant{Server: s.Name, Tool: t.Name, Definition: s.Identity(),
		Seen: policy.SeenOf([]string{t.Title, t.Description}, []json.RawMessage{t.InputSchema, t.OutputSchema}, t.Annotations)}
}
