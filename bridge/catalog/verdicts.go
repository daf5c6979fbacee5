package catalog

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// What else than tools code can ask a server for, by MCP's names.
const (
	MethodReadResource = "resources/read"
	MethodGetPrompt    = "prompts/get"
	MethodComplete     = "completion/complete"
)

var methods = []string{
	upstream.Resources.Method(), upstream.ResourceTemplates.Method(), upstream.Prompts.Method(),
	MethodReadResource, MethodGetPrompt, MethodComplete,
}

// isMethod reports whether a name is of one of MCP's methods that code can ask a server for.
func isMethod(name string) bool { return slices.Contains(methods, name) }

// Judge returns the verdict on a tool: of the host that the server is from, which may hide it, else
// of the policy. A tool that can't be called is denied.
func (c *Catalog) Judge(server string, t upstream.Tool) policy.Decision {
	if t.Invalid != "" {
		source := "its definition, which MCP doesn't allow"
		return policy.Decision{Verdict: policy.Deny, Source: source, Reason: t.Invalid}
	}
	if by, hidden := c.definitions[server].HiddenBy(t.Name); hidden {
		source := "the list of tools in " + by.String() + ", which hides it from models"
		return policy.Decision{Verdict: policy.Deny, Source: source}
	}
	return c.cfg.Policy.Decide(c.Judged(server, t.Name, t.Annotations))
}

// Judged returns a tool as a policy knows it: by each name that the server has in some file.
func (c *Catalog) Judged(server, tool string, annotations json.RawMessage) policy.Tool {
	also := c.definitions[server].Names()[1:]
	return policy.Tool{Server: server, Name: tool, Also: also, Annotations: annotations}
}

// JudgeMethod returns the verdict on one of MCP's methods that code can ask a server for; false for
// any other name. A policy has these by the names of the methods, which only read.
func (c *Catalog) JudgeMethod(server, method string) (policy.Decision, bool) {
	if !isMethod(method) {
		return policy.Decision{}, false
	}
	t := c.Judged(server, method, nil)
	t.Method = true
	return c.cfg.Policy.Decide(t), true
}

// Denied returns the error of a call that may not be made.
func Denied(server, tool string, d policy.Decision) error {
	return &entrypoint.CallError{Code: entrypoint.CodeDenied,
		Message: fmt.Sprintf("tool %q of server %q may not be called, by %s", tool, server, text.Safe(d.Why()))}
}

// LastListed returns a tool as its server described it last, as far as is known without starting
// the server; else its name alone, and false.
func (c *Catalog) LastListed(server, tool string) (t upstream.Tool, known bool) {
	if set := c.known(server); set != nil {
		if i := slices.IndexFunc(set.listed, func(t upstream.Tool) bool { return t.Name == tool }); i >= 0 {
			return set.listed[i], true
		}
	}
	return upstream.Tool{Name: tool}, false
}

// Unreachable returns why a call of that tool would reach nothing at any of these servers, as far
// as is known without starting one: a clause with the names that are near, or nothing where one has
// the tool. Sure is false where a server has not listed its tools yet.
func (c *Catalog) Unreachable(tool string, servers ...string) (why string, sure bool) {
	var all []string
	for _, name := range servers {
		if _, ok := c.byName[name]; !ok {
			return c.Unknown(name, c.servers), true
		}
		if isMethod(tool) {
			return "", true
		}
		set := c.known(name)
		if set == nil {
			return fmt.Sprintf("it is not known whether there is such a tool: "+
				"server %q has not listed its tools yet", name), false
		}
		if why = set.without(tool); why == "" {
			return "", true
		}
		all = append(all, toolNames(set.listed)...)
	}
	if len(servers) > 1 {
		why = fmt.Sprintf("there is no tool %q in the last list of any of its %d servers%s",
			tool, len(servers), text.DidYouMean(tool, all))
	}
	return why, true
}

// without returns that the server has not listed a tool, with the names that are near, or nothing
// where it has.
func (t *Toolset) without(tool string) string {
	all := toolNames(t.listed)
	if slices.Contains(all, tool) {
		return ""
	}
	lists := "lists"
	if !t.asOf.IsZero() {
		lists = "listed " + age(t.asOf) + " ago"
	}
	return fmt.Sprintf("there is no tool %q among the %d that server %q %s%s",
		tool, len(all), t.Server.Name, lists, text.DidYouMean(tool, all))
}
