package catalog

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Where the manual is read, and as what.
const (
	ManualURI  = "resource://mcp-bridge/capabilities"
	ManualMIME = "text/markdown"

	// OtherManualURI is what the Python project with the same purpose calls its manual.
	OtherManualURI = "resource://mcp-server-code-execution-mode/capabilities"
)

// maxProblems is how many problems the manual lists before it only counts the rest.
const maxProblems = 20

//go:embed manual.md
var manual string

// ManualResource returns the manual as it is listed.
func ManualResource() mcp.Resource {
	return mcp.NewResource(ManualURI, "capabilities",
		mcp.WithResourceTitle("What code in run_python sees"),
		mcp.WithResourceDescription(
			"Manual of the sandbox: calling tools, finding them, output, limits, and the configured servers."),
		mcp.WithMIMEType(ManualMIME))
}

// Manual returns the manual with the limits, servers and problems of this bridge. It holds no
// command, argument or environment of a server.
func (c *Catalog) Manual(l Limits) string {
	var m strings.Builder
	m.WriteString(manual)
	fmt.Fprintf(&m, "- A run has %s s unless `timeout` asks for more, at most %s s. "+
		"The time of its tool calls counts; starting a server and getting the container image don't.\n",
		text.Seconds(l.Timeout), text.Seconds(l.MaxTimeout))
	m.WriteString("\n## Servers\n\n")
	if len(c.servers) == 0 {
		m.WriteString("None is configured. `mcp-bridge servers` shows where was looked.\n")
	}
	writeServers(&m, c, false)
	return m.String()
}

// writeServers lists the servers, and what is configured and can't be used, with the next step if
// asked for.
func writeServers(m *strings.Builder, c *Catalog, next bool) {
	for _, s := range c.servers {
		fmt.Fprintf(m, "- %s: `mcp_%s`", text.Line(s.Name), s.Alias)
		if s.Description != "" {
			fmt.Fprintf(m, " – %s", text.Line(s.Description))
		}
		m.WriteByte('\n')
	}
	if len(c.problems) == 0 {
		return
	}
	m.WriteString("\n## Configured but not usable\n\n")
	for i, p := range c.problems {
		if i == maxProblems {
			fmt.Fprintf(m, "- and %d more: `mcp-bridge servers`\n", len(c.problems)-i)
			break
		}
		name := p.Server
		if name == "" {
			name = p.Source.Path
		}
		why := p.Reason
		if next {
			why = text.Sentence(p.Reason, p.Next)
		}
		fmt.Fprintf(m, "- %s (%s): %s\n", text.Line(name), text.Line(p.Source.Host), text.Line(why))
	}
}
