package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// asIs has the model show what the user asked for.
const asIs = "Show me the following as it is. Call no tool.\n\n"

// ServersPrompt returns which servers code can call, and which of those configured it can't, and
// why.
func (c *Catalog) ServersPrompt() string {
	var out strings.Builder
	fmt.Fprintf(&out, asIs+"Code in run_python can call %d MCP servers, if they start.\n", len(open(c.servers)))
	writeServers(&out, c, true)
	out.WriteString("\nIn a terminal, `mcp-bridge servers` shows from which files they are, " +
		"and `mcp-bridge servers --check` which of them start.\n")
	return out.String()
}

// LoginPrompt returns how the user logs in to a server, or to which ones where no name is given.
func (c *Catalog) LoginPrompt(name string) string {
	if name == "" {
		remote := c.Remote()
		if len(remote) == 0 {
			return asIs + "There are no remote servers to log in to. `mcp-bridge servers` shows where was looked.\n"
		}
		return asIs + fmt.Sprintf("Remote servers: %s. "+
			"To log in to one, type this in a terminal: mcp-bridge login SERVER\n", text.List(remote))
	}
	s, ok := c.Find(name)
	if !ok {
		return asIs + c.Unknown(name, c.servers) + "\n"
	}
	if c.definitions[s.Name].URL == "" {
		return asIs + fmt.Sprintf("Server %q is a program on this machine: there is nothing to log in to.\n",
			text.Line(s.Name))
	}
	return asIs + fmt.Sprintf("To log in to %s, type this in a terminal: mcp-bridge login %s\n"+
		"The browser opens. The next call of the server uses the login.\n",
		text.Line(s.Name), text.ShellWord(s.Name))
}

// Remote returns the names of the servers that are reached by a URL.
func (c *Catalog) Remote() (names []string) {
	for _, s := range c.servers {
		if c.definitions[s.Name].URL != "" {
			names = append(names, s.Name)
		}
	}
	return names
}

// PolicyPrompt returns which tools code may call. Broken is why no code is run at all, or nothing.
func (c *Catalog) PolicyPrompt(broken string) string {
	if broken != "" {
		return asIs + "No code is run: " + text.Line(broken) + "\n"
	}
	var out strings.Builder
	out.WriteString(asIs)
	if path := c.cfg.Policy.Path(); path == "" {
		out.WriteString("No policy is set: code may call every tool. MCP_BRIDGE_POLICY names a file with one.\n\n")
	} else {
		fmt.Fprintf(&out, "The policy is %s.\n\n", text.Line(path))
	}
	for _, s := range c.servers {
		fmt.Fprintf(&out, "- %s: %s\n", text.Line(s.Name), verdicts(c, s.Name))
	}
	out.WriteString("\nIn a terminal, `mcp-bridge policy test SERVER.TOOL` says which line decides, " +
		"and `mcp-bridge policy list` what you have allowed for good.\n")
	return out.String()
}

// verdicts returns what of a server's tools, as far as they are known, may be called.
func verdicts(c *Catalog, server string) string {
	set := c.known(server)
	if set == nil {
		return "its tools aren't known yet"
	}
	var asked []string
	for _, t := range set.tools {
		if c.Judge(server, t).Verdict == policy.Ask {
			asked = append(asked, t.Name)
		}
	}
	said := fmt.Sprintf("%d allowed", len(set.tools)-len(asked))
	if len(asked) > 0 {
		said += "; you are asked about " + text.List(asked)
	}
	if denied := slices.Sorted(maps.Keys(set.denied)); len(denied) > 0 {
		said += "; denied: " + text.List(denied)
	}
	return said
}
