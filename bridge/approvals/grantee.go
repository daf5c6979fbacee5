package approvals

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// ToolOf returns the server and the tool that SERVER.TOOL names; ok is false if there is no such
// server. If several servers' names fit, the longest one counts. A name in quotes or with
// backslashes is read as in a policy.
func ToolOf(c discovery.Catalog, name string) (found discovery.Server, tool string, ok bool) {
	one, err := policy.Exact(name)
	quoted := err == nil && strings.ContainsAny(name, `\"`)
	for _, s := range c.Servers {
		if quoted && s.Name == one.Server {
			return s, one.Name, true
		}
		if rest, has := strings.CutPrefix(name, s.Name+"."); has && rest != "" && len(s.Name) >= len(found.Name) {
			found, tool, ok = s, rest, true
		}
	}
	return found, tool, ok
}

// Grantee returns the server and the tool that a grant is for.
func Grantee(c discovery.Catalog, name string) (s discovery.Server, tool string, err error) {
	one, err := policy.Exact(name)
	if errors.Is(err, policy.ErrPattern) {
		return s, "", fmt.Errorf(`%q is a pattern, and a grant is for one tool: write a rule with verdict = `+
			`"allow" `+
			`into the file that MCP_BRIDGE_POLICY names. In the name of one tool, write \* for * and \? for ?`, name)
	}
	if s, tool, ok := ToolOf(c, name); ok {
		return s, tool, nil
	}
	for _, p := range c.Problems {
		if p.Server != "" && (p.Server == one.Server || strings.HasPrefix(name, p.Server+".")) {
			return s, "", fmt.Errorf("server %q is configured in %s but can't be used: %s; %s",
				p.Server, p.Source.Path, p.Reason, cmp.Or(p.Next, "mcp-bridge servers lists the servers"))
		}
	}
	return s, "", fmt.Errorf("%q is no tool of a server that is configured here: say SERVER.TOOL; mcp-bridge "+
		"servers lists the servers, and those from MCP_BRIDGE_CONFIG with that variable set", name)
}
