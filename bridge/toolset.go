package bridge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxtools"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// ToolsCode names the set of tools that clients have unless the user chooses another.
const ToolsCode = "code"

// toolSets are the sets of tools that have names.
var toolSets = map[string]func() []string{
	ToolsCode: codeTools,
	"single":  func() []string { return []string{runPythonName} },
	"sandbox": func() []string { return append(sandboxtools.Names(), output.ReadTool) },
	"all":     ToolNames,
}

func codeTools() []string { return []string{runPythonName, searchToolsName, output.ReadTool} }

// ToolNames returns the names of all tools that the bridge can have.
func ToolNames() []string { return append(codeTools(), sandboxtools.Names()...) }

// ToolSet returns the names of the tools of a set, or of a list of tools with commas between them.
func ToolSet(v string) ([]string, error) {
	if set := toolSets[v]; set != nil {
		return set(), nil
	}
	var names []string
	for name := range strings.SplitSeq(v, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(ToolNames(), name) {
			return nil, fmt.Errorf("there is no tool %q%s; give code, single, sandbox, all, or names of tools with "+
				"commas between them", name, text.DidYouMean(name, ToolNames()))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// ofSandboxes reports whether a tool works on sandboxes without code.
func ofSandboxes(tool string) bool { return slices.Contains(sandboxtools.Names(), tool) }

// NeedsSandboxes reports whether one of the tools needs sandboxes that last.
func NeedsSandboxes(tools []string) bool { return slices.ContainsFunc(tools, ofSandboxes) }

// offers reports whether clients have a tool.
func (b *Bridge) offers(tool string) bool { return slices.Contains(b.cfg.Offer, tool) }

// enumerated returns names as a sentence has them.
func enumerated(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// addTools adds the tools that clients have.
func (b *Bridge) addTools() {
	b.offer(b.latest)
	if b.offers(searchToolsName) {
		b.addTool(catalog.SearchTool(b.structured), b.searchTools)
	}
	if b.offers(output.ReadTool) {
		b.addTool(output.Tool(), b.outputs.readOutput)
	}
	for _, t := range sandboxtools.Definitions() {
		if b.offers(t.Name) {
			b.addTool(t, b.inSandbox(t))
		}
	}
}

// sandboxInstructions are what a host tells its model of a bridge whose tools are those of
// sandboxes.
const sandboxInstructions = "Sandboxes are locked-down containers with Python and a shell, and without " +
	"network. sandbox_create makes one and returns its id, which the other tools take. Files are in /workspace."

// instructions returns what a host tells its model of the whole bridge.
func (b *Bridge) instructions() string {
	said := b.latest.Instructions()
	if !b.offers(searchToolsName) {
		said = catalog.WithoutSearch(said)
	}
	if !b.offers(runPythonName) {
		said = sandboxInstructions
	}
	return said
}

// StandingTools is how many tools the bridge has, unless the user chooses.
const StandingTools = 3

// StandingTokens estimates how many tokens those tools and the instructions take of a host's
// context.
func StandingTokens(c *catalog.Catalog) int {
	return catalog.DefinitionTokens(Name, standing(c)) + catalog.Tokens(c.Instructions())
}

// SearchedTokens is StandingTokens in a host whose tool search announces tools in some words. It
// loads run_python all the same, since the bridge asks for that.
func SearchedTokens(c *catalog.Catalog, words string) int {
	tools := standing(c)
	return catalog.DefinitionTokens(Name, tools[:1]) + catalog.AnnouncedTokens(Name, tools[1:]) +
		catalog.Tokens(words) + catalog.Tokens(c.Instructions())
}

// standing returns those tools, run_python first.
func standing(c *catalog.Catalog) (tools []upstream.Tool) {
	run := c.RunTool(catalog.Limits{Kept: catalog.KeptInSandbox})
	for _, t := range [StandingTools]mcp.Tool{run, catalog.SearchTool(false), output.Tool()} {
		raw, err := json.Marshal(t)
		var tool upstream.Tool
		if err == nil && json.Unmarshal(raw, &tool) == nil {
			tools = append(tools, tool)
		}
	}
	return tools
}
