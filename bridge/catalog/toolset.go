package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/stubs"
)

// Bounds of what a guest is told of a server, which has to fit into a frame (entrypoint.MaxFrame).
const (
	maxProvider    = 12 << 20 // bytes of all of it as JSON
	maxSchema      = 1 << 20  // bytes of one schema
	maxDescription = 16 << 10 // bytes of one description
)

// A Toolset is the tools of one server with what is made of them. It doesn't change.
type Toolset struct {
	Server Server

	listed  []upstream.Tool            // all that the server has
	tools   []upstream.Tool            // those of them that code may know of
	denied  map[string]policy.Decision // the others, by real name
	aliases map[string]string          // of all, by real name: what is denied changes no other tool's alias
	byAlias map[string]string          // real name by alias
	asOf    time.Time                  // when the server told an earlier process; zero: it has told this one

	before *Toolset // what it has replaced, where the server's tools have changed; nil for none

	// seen returns the shape of a tool's results in about most bytes, or nothing.
	seen     func(tool string, most int) string
	provider func() (entrypoint.Provider, error)
}

// toolset makes the toolset of a list, without the tools that are denied.
func (c *Catalog) toolset(s Server, tools []upstream.Tool) *Toolset {
	t := &Toolset{Server: s, listed: tools, denied: map[string]policy.Decision{}, byAlias: map[string]string{}}
	for _, tool := range tools {
		if d := c.Judge(s.Name, tool); d.Verdict == policy.Deny {
			t.denied[tool.Name] = d
		} else {
			t.tools = append(t.tools, tool)
		}
	}
	t.aliases = entrypoint.Aliases(toolNames(tools))
	for name, alias := range t.aliases {
		t.byAlias[alias] = name
	}
	t.seen = func(tool string, most int) string { return c.seen.text(c.identities[s.Name](), tool, most) }
	t.provider = sync.OnceValues(t.makeProvider)
	return t
}

// Names returns the names of the tools that code may know of.
func (t *Toolset) Names() []string { return toolNames(t.tools) }

func toolNames(tools []upstream.Tool) []string {
	names := make([]string, 0, len(tools))
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names
}

// Find returns a tool by its alias or real name. An alias comes first: that is what frames have,
// and another tool's real name may look the same.
func (t *Toolset) Find(name string) (upstream.Tool, bool) {
	real := t.Real(name)
	i := slices.IndexFunc(t.tools, func(tool upstream.Tool) bool { return tool.Name == real })
	if i < 0 {
		return upstream.Tool{}, false
	}
	return t.tools[i], true
}

// Real returns the name of the tool that Find looks for.
func (t *Toolset) Real(name string) string {
	if real, ok := t.byAlias[name]; ok {
		return real
	}
	return name
}

// Denied returns why a tool may not be called, by its alias or real name; false where it may.
func (t *Toolset) Denied(name string) (policy.Decision, bool) {
	d, ok := t.denied[t.Real(name)]
	return d, ok
}

// maxRefusal bounds, in bytes, what a guest is told of why a tool may not be called.
const maxRefusal = 500

// refusals returns the names and aliases of tools that are denied, with the reasons, for a guest:
// as many as of tools that are gone.
func (t *Toolset) refusals() map[string]string {
	told := map[string]string{}
	for _, tool := range t.listed {
		d, denied := t.denied[tool.Name]
		for _, name := range []string{tool.Name, t.aliases[tool.Name]} {
			if denied && len(name) <= maxGoneName && len(told) < maxGone {
				told[name] = text.First(text.Safe(d.Why()), maxRefusal)
			}
		}
	}
	return told
}

// Provider returns the server as the guest is told of it at the first touch: with its tools, and
// their declarations to read. With an error not even their names fit into a frame.
func (t *Toolset) Provider() (entrypoint.Provider, error) {
	p, err := t.provider()
	p.Gone, p.Denied = t.gone(), t.refusals()
	return p, err
}

// NoTool returns the error of a call of a tool that isn't in the set, which is the server's latest
// list. Code that has found it in an earlier list is told that this was out of date.
func (t *Toolset) NoTool(name string) error {
	if d, ok := t.Denied(name); ok {
		return Denied(t.Server.Name, t.Real(name), d)
	}
	if t.before != nil {
		if _, had := t.before.Find(name); had {
			when := "before"
			if !t.before.asOf.IsZero() {
				when = age(t.before.asOf) + " ago"
			}
			return invalid("server %q has no tool %q any more: the list of %s was out of date; search again. "+
				"It now has: %s", t.Server.Name, name, when, text.List(t.Names()))
		}
	}
	return invalid("server %q has no tool %q%s; it has: %s",
		t.Server.Name, name, text.DidYouMean(name, t.Names()), text.List(t.Names()))
}

// maxGone bounds the names of tools that a guest is told to be gone, in number and in bytes each.
const (
	maxGone     = 200
	maxGoneName = 200
)

// gone returns the names and aliases of tools that the server had before its latest list, the set.
func (t *Toolset) gone() (names []string) {
	if t.before == nil {
		return nil
	}
	for _, tool := range t.before.tools {
		for _, name := range slices.Compact([]string{tool.Name, t.before.aliases[tool.Name]}) {
			_, denied := t.Denied(name)
			if _, ok := t.Find(name); !ok && !denied && len(name) <= maxGoneName && len(names) < maxGone {
				names = append(names, name)
			}
		}
	}
	return names
}

// makeProvider leaves out of what is too long first the schemas, whose tools then take any
// arguments that their server takes, then declarations and descriptions.
func (t *Toolset) makeProvider() (entrypoint.Provider, error) {
	p := provider(t.Server)
	p.Tools = make(map[string]entrypoint.Tool, len(t.tools))
	for _, tool := range t.tools {
		told := t.told(tool)
		p.Tools[told.SafeName] = told
	}
	stubs.Declare(&p)
	for _, strip := range []func(*entrypoint.Tool){
		func(tool *entrypoint.Tool) { tool.InputSchema, tool.OutputSchema = nil, nil },
		func(tool *entrypoint.Tool) { tool.Stub, tool.Keys = "", nil },
		func(tool *entrypoint.Tool) { tool.Description = "" },
	} {
		if len(text.JSON(p)) <= maxProvider {
			return p, nil
		}
		for alias, tool := range p.Tools {
			strip(&tool)
			p.Tools[alias] = tool
		}
	}
	if len(text.JSON(p)) > maxProvider {
		return entrypoint.Provider{}, invalid("the names of server %q's tools are longer than %d MiB in all; "+
			"the user can deny some of its tools in MCP_BRIDGE_POLICY", t.Server.Name, maxProvider>>20)
	}
	return p, nil
}

// told returns a tool in the words of the protocol, without schemas that are too long.
func (t *Toolset) told(tool upstream.Tool) entrypoint.Tool {
	told := entrypoint.Tool{
		SafeName: t.aliases[tool.Name], OriginalName: tool.Name, Description: tool.Description,
		InputSchema: tool.InputSchema, OutputSchema: tool.OutputSchema,
	}
	if len(told.Description) > maxDescription {
		told.Description = text.First(told.Description, maxDescription) + " […]"
	}
	if shape := t.shape(tool, maxSeenLong); shape != "" {
		told.Description += "\n\nResults seen so far, not declared by the server: " + shape
	}
	told.Description = strings.TrimSpace(told.Description)
	for _, schema := range []*json.RawMessage{&told.InputSchema, &told.OutputSchema} {
		if len(*schema) > maxSchema {
			*schema = nil
		}
	}
	return told
}

// shape returns what the results of a tool were seen to be, or nothing where it declares that
// itself.
func (t *Toolset) shape(tool upstream.Tool, most int) string {
	if len(tool.OutputSchema) > 0 {
		return ""
	}
	return t.seen(tool.Name, most)
}

// seenMark is what a type that a server hasn't declared is marked with.
const seenMark = " # seen, not declared"

// signature returns how code calls a tool, on one line. The type of a result that isn't declared is
// that of the results seen.
func (t *Toolset) signature(tool upstream.Tool) string {
	signature := fmt.Sprintf("mcp_%s.%s", t.Server.Alias, stubs.Signature(t.aliases[tool.Name], t.told(tool)))
	shape := t.shape(tool, maxSeenText)
	if at := strings.LastIndex(signature, " -> "); shape != "" && at >= 0 {
		return signature[:at] + " -> " + shape + seenMark
	}
	return signature
}
