package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// permits are what one run may call. It is safe for concurrent use.
type permits struct {
	catalog   *catalog.Catalog
	principal string
	count     *policy.Run
	consent   *elicit.Consent
}

// permits returns what the run may call, even if servers change.
func (r *run) permits() *permits {
	ask, c := r.request.asker.Consent, r.args.catalog
	if r.ask != nil {
		ask = askDirect(r.ask, r.request.clock)
	}
	consent := elicit.NewConsent(r.bridge.cfg.Grants, ask, r.auditor.log)
	return &permits{catalog: c, principal: r.request.Principal(), count: c.Policy().Run(), consent: consent}
}

// askDirect returns what asks the program's own user: see Direct.Ask.
func askDirect(ask func(context.Context, string) (bool, error), clock *sandbox.Clock) elicit.Ask {
	return func(ctx context.Context, form map[string]any) (json.RawMessage, error) {
		defer clock.Stop()() // the time that a person takes isn't the code's
		message, _ := form["message"].(string)
		yes, err := ask(ctx, message)
		if err != nil {
			return nil, err
		}
		return text.JSON(map[string]any{"action": map[bool]string{true: "accept", false: "decline"}[yes]}), nil
	}
}

// decide returns nil when the run may make a call with these arguments, on which d is the verdict,
// and for which it may ask the user. What isn't a tool goes by its method's name. It is the last
// word on each call, whatever was listed before.
func (p *permits) decide(ctx context.Context, r *audit.Record, s catalog.Server, t upstream.Tool,
	args json.RawMessage, d policy.Decision) error {
	judged(r, d)
	if d.Verdict == policy.Deny {
		return catalog.Denied(s.Name, t.Name, d)
	}
	if err := p.count.Count(p.catalog.Judged(s.Name, t.Name, nil), len(args)); err != nil {
		return &entrypoint.CallError{Code: entrypoint.CodeCallLimit,
			Message: fmt.Sprintf("tool %q of server %q: %v", t.Name, s.Name, err)}
	}
	if d.Verdict != policy.Ask {
		return nil
	}
	asked := question(p.catalog, s.Name, t, args, d)
	if p.principal != Local {
		asked.Grant.Principal = p.principal
	}
	asked.Asked = func() { r.Asked = true }
	return p.consent.Allow(ctx, asked)
}

// question returns what the user is asked about a call.
func question(
	c *catalog.Catalog, server string, t upstream.Tool, args json.RawMessage, d policy.Decision,
) elicit.Call {
	definition := c.Definitions()[server]
	hide := sync.OnceValue(func() func(string) string { return upstream.HideNamed(c.Definitions()) })
	return elicit.Call{
		Arguments: args, Decision: d, Grant: GrantOf(definition, t),
		Now: map[string]string{
			"description": t.Title + " " + t.Description,
			"schema":      string(t.InputSchema), "annotations": string(t.Annotations),
		},
		Hide: func(text string) string { return hide()(text) }, Here: definition.StartedHere(),
	}
}

// GrantOf returns what is kept when the user allows a tool for good. It holds for what the server
// says of the tool now, and for this definition of the server: what is started or connected to,
// with what and in which directory, but not which file it is from.
func GrantOf(s discovery.Server, t upstream.Tool) policy.Grant {
	schemas := []json.RawMessage{t.InputSchema, t.OutputSchema}
	seen := policy.SeenOf([]string{t.Title, t.Description}, schemas, t.Annotations)
	return policy.Grant{Server: s.Name, Tool: t.Name, Definition: s.Identity(), Seen: seen}
}
