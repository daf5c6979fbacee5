package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
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

// judge is the verdict on a tool: of the host that the server is from, which may hide it, else of the policy. A tool that can't be
// called is denied.
func (c *catalog) judge(e entry, t upstream.Tool) policy.Decision {
	if t.Invalid != "" {
		return policy.Decision{Verdict: policy.Deny, Source: "its definition, which MCP doesn't allow", Reason: t.Invalid}
	}
	if by, hidden := c.definitions[e.name].HiddenBy(t.Name); hidden {
		return policy.Decision{Verdict: policy.Deny, Source: "the list of tools in " + by.String() + ", which hides it from models"}
	}
	return c.policy.Decide(c.judged(e, t.Name, t.Annotations))
}

// judged is a tool as a policy knows it: by each name that the server has in some file.
func (c *catalog) judged(e entry, tool string, annotations json.RawMessage) policy.Tool {
	return policy.Tool{Server: e.name, Name: tool, Also: c.definitions[e.name].Names()[1:], Annotations: annotations}
}

// judgeMethod is the verdict on what isn't a tool: a policy has these by the names of MCP's methods, which only read (MCP, resources,
// prompts and completion).
func (c *catalog) judgeMethod(e entry, method string) policy.Decision {
	t := c.judged(e, method, nil)
	t.Method = true
	return c.policy.Decide(t)
}

// permits are what one run may call. It is safe for concurrent use.
type permits struct {
	catalog *catalog
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
	return &permits{catalog: c, count: c.policy.Run(), consent: newConsent(c.definitions, b.grants, ask, log)}
}

// tool says whether the run may call a tool with these arguments, for which it may ask the user. It is the last word on each call,
// whatever was listed before.
func (p *permits) tool(ctx context.Context, r *audit.Record, s entry, t upstream.Tool, args json.RawMessage) error {
	return p.decide(ctx, r, s, t, args, p.catalog.judge(s, t))
}

// method is the same for what isn't a tool.
func (p *permits) method(ctx context.Context, r *audit.Record, s entry, method string, args json.RawMessage) error {
	return p.decide(ctx, r, s, upstream.Tool{Name: method}, args, p.catalog.judgeMethod(s, method))
}

func (p *permits) decide(ctx context.Context, r *audit.Record, s entry, t upstream.Tool, args json.RawMessage, d policy.Decision) error {
	judged(r, d)
	if d.Verdict == policy.Deny {
		return deniedBy(s, t.Name, d)
	}
	if err := p.count.Count(p.catalog.judged(s, t.Name, nil), len(args)); err != nil {
		return &entrypoint.CallError{Code: entrypoint.CodeCallLimit, Message: fmt.Sprintf("tool %q of server %q: %v", t.Name, s.name, err)}
	}
	if d.Verdict == policy.Ask {
		return p.consent.ask(ctx, s, t, args, d)
	}
	return nil
}

// deniedBy is the error of a call that may not be made.
func deniedBy(s entry, tool string, d policy.Decision) error {
	return &entrypoint.CallError{Code: entrypoint.CodeDenied,
		Message: fmt.Sprintf("tool %q of server %q may not be called, by %s", tool, s.name, text.Safe(d.Why()))}
}

// GrantOf is what is kept when the user allows a tool for good: for this very definition of its server, which is what is started or
// connected to, with what and in which directory, and for what the server says of the tool. Where the definition is from doesn't count.
func GrantOf(s discovery.Server, t upstream.Tool) policy.Grant {
	return policy.Grant{Server: s.Name, Tool: t.Name, Definition: s.Identity(),
		Seen: policy.SeenOf([]string{t.Title, t.Description}, []json.RawMessage{t.InputSchema, t.OutputSchema}, t.Annotations)}
}
