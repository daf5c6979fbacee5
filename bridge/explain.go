package bridge

import (
	"fmt"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// Judge is the verdict on a tool of a server, as runs that begin now get it.
func (b *Bridge) Judge(server string, t upstream.Tool) policy.Decision {
	return b.catalog().judge(entry{name: server}, t)
}

// JudgeMethod is the same for one of MCP's methods that code can ask a server for; false where the name is none of these.
func (b *Bridge) JudgeMethod(server, name string) (policy.Decision, bool) {
	if !isMethod(name) {
		return policy.Decision{}, false
	}
	return b.catalog().judgeMethod(entry{name: server}, name), true
}

// Listed returns a tool as its server described it last, as far as is known without starting the server; else its name alone.
func (b *Bridge) Listed(server, tool string) (t upstream.Tool, known bool) {
	c := b.catalog()
	if e, ok := c.byName[server]; ok {
		if box := c.shelf.known(e); box != nil {
			if i := slices.IndexFunc(box.listed, func(t upstream.Tool) bool { return t.Name == tool }); i >= 0 {
				return box.listed[i], true
			}
		}
	}
	return upstream.Tool{Name: tool}, false
}

// Unknown returns why a call of that tool would reach nothing, as far as is known without starting the
// server: a clause with the names that are near, or nothing where the tool is there. Sure is false
// where the server has not listed its tools yet.
func (b *Bridge) Unknown(server, tool string) (why string, sure bool) {
	c := b.catalog()
	e, ok := c.byName[server]
	if !ok {
		return c.unknown(server, c.servers), true
	}
	if isMethod(tool) {
		return "", true
	}
	box := c.shelf.known(e)
	if box == nil {
		return fmt.Sprintf("it is not known whether there is such a tool: server %q has not listed its tools yet", server), false
	}
	return box.without(tool), true
}

// without says that the server has not listed a tool, with the names that are near; empty where it has.
func (b *toolbox) without(tool string) string {
	all := names(b.listed)
	if slices.Contains(all, tool) {
		return ""
	}
	lists := "lists"
	if !b.asOf.IsZero() {
		lists = "listed " + age(b.asOf) + " ago"
	}
	return fmt.Sprintf("there is no tool %q among the %d that server %q %s%s", tool, len(all), b.server.name, lists, text.DidYouMean(tool, all))
}

// Missing says why a call of that tool would reach nothing at any of these servers, whose last lists are all known: a clause with the
// names that are near. It is empty where one has it, or one has listed nothing yet. No server is started.
func (b *Bridge) Missing(servers []string, tool string) string {
	if isMethod(tool) {
		return ""
	}
	c := b.catalog()
	var all []string
	why := ""
	for _, name := range servers {
		e, ok := c.byName[name]
		if !ok {
			continue
		}
		box := c.shelf.known(e)
		if box == nil {
			return ""
		}
		if why = box.without(tool); why == "" {
			return ""
		}
		all = append(all, names(box.listed)...)
	}
	if len(servers) > 1 {
		why = fmt.Sprintf("there is no tool %q in the last list of any of its %d servers%s", tool, len(servers), text.DidYouMean(tool, all))
	}
	return why
}
