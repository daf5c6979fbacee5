package catalog

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// The names of the tools that are defined here.
const (
	RunPython   = "run_python"
	SearchTools = "search_tools"
)

// Everything here is read by models in hosts that cut: descriptions and instructions at 2,048
// characters. All of it together stays under 900 tokens (TestStandingCost), as every conversation
// pays for it.

// runPython is the description of run_python. Its example works on a server that declares no schema
// of its results and sends JSON as text.
//
//go:embed run_python.txt
var runPython string

// ownModules is what run_python.txt says that code can import.
const ownModules = "standard library only"

// Bounds of what the tool says of servers and files, which every conversation pays for.
const (
	maxToolNames  = 60  // bytes of JSON of the servers' names
	maxInputsText = 120 // characters of what is said of the argument files
)

// besideOutput is how many characters a result may have beside what was printed: the traceback,
// notices and the names of files.
const besideOutput = 16 << 10

// Limits are what the tool and the manual say of a run.
type Limits struct {
	Timeout, MaxTimeout time.Duration

	Output   int64  // bytes of what was printed that a result shows
	Files    string // what the argument files are for; empty without that argument
	Packages string // what code can import, in a few words; empty for Python's own modules alone
	Kept     Kept   // what outlives a call
	NoSearch bool   // there is no search_tools
}

// Kept says what of a call outlives it.
type Kept int

// What can be kept.
const (
	KeptNothing   Kept = iota
	KeptInSandbox      // of calls that name a sandbox
	KeptAlways         // of all calls of a client
)

// unsure is what run_python.txt says of search_tools.
const unsure = "search_tools, or "

// nothingKept is what run_python.txt says of what is kept.
const nothingKept = "nothing is kept between calls"

// kept is what takes its place, and what is said of the argument sandbox.
var kept = map[Kept]struct{ text, sandbox string }{
	KeptNothing:   {text: nothingKept},
	KeptInSandbox: {"nothing is kept without sandbox", `"new" or an id from a result: keeps variables`},
	KeptAlways: {"variables are kept between calls",
		`"new" or an id from a result: another than the usual one`},
}

// RunTool returns run_python as it is listed.
func (c *Catalog) RunTool(l Limits) mcp.Tool {
	description := strings.Replace(runPython, ownModules, cmp.Or(l.Packages, ownModules), 1)
	description = strings.Replace(description, nothingKept, kept[l.Kept].text, 1)
	if l.NoSearch {
		description = strings.Replace(description, unsure, "", 1)
	}
	t := mcp.NewToolWithRawSchema(RunPython, description, c.InputSchema(l))
	t.Title = "Run Python"
	// Code may call any tool. Hosts show titles and hints to people; models get neither.
	t.Annotations = mcp.ToolAnnotation{
		ReadOnlyHint: new(false), DestructiveHint: new(true), IdempotentHint: new(false), OpenWorldHint: new(true),
	}
	t.Meta = mcp.NewMetaFromMap(map[string]any{
		// Claude Code shows results up to this size whole; above its own limit it shows 2 KB and a
		// file's name.
		"anthropic/maxResultSizeChars": l.Output*3/2 + besideOutput,
		"anthropic/alwaysLoad":         true, // it leads to all other tools
	})
	return t
}

// OnlyReads returns the hints of our other tools, by which hosts may call them without asking: they
// tell what is known here, and change nothing. A server that a search starts is asked only which
// tools it has.
func OnlyReads() mcp.ToolAnnotation {
	return mcp.ToolAnnotation{
		ReadOnlyHint: new(true), DestructiveHint: new(false), IdempotentHint: new(true), OpenWorldHint: new(false),
	}
}

// SearchTool returns search_tools as it is listed.
func SearchTool(structured bool) mcp.Tool {
	t := mcp.NewToolWithRawSchema(SearchTools,
		"Find tools of the user's MCP servers by what they do (no query: all), "+
			"as names, signatures (brief) or Python declarations (full).",
		json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"server":{"type":"string"},`+
			`"detail":{"enum":["names","brief","full"]},"limit":{"type":"integer"},"cursor":{"type":"string"}}}`))
	t.Title, t.Annotations = "Find tools", OnlyReads()
	if structured { // pageJSON, as far as programs need to know it beforehand
		t.RawOutputSchema = json.RawMessage(`{"type":"object","properties":{` +
			`"results":{"type":"array","items":{"type":"object"}},"total":{"type":"integer"},` +
			`"cursor":{"type":"string"},"unknown":{"type":"array","items":{"type":"object"}}},` +
			`"required":["results","total"]}`)
	}
	return t
}

type property struct {
	Type        string    `json:"type"`
	Items       *property `json:"items,omitempty"`
	Description string    `json:"description,omitempty"`
}

// InputSchema returns the schema of run_python's arguments, which names the servers.
func (c *Catalog) InputSchema(l Limits) json.RawMessage {
	texts := func(description string) property {
		return property{Type: "array", Items: &property{Type: "string"}, Description: description}
	}
	servers := "Servers to use; default all, [] none."
	if names := someNames(open(c.servers), maxToolNames); names != "" {
		servers += " There are: " + names
	}
	seconds := "Seconds; default " + text.Seconds(l.Timeout) + ", at most " + text.Seconds(l.MaxTimeout)
	properties := map[string]property{
		"code": {Type: "string"}, "servers": texts(servers), "timeout": {Type: "number", Description: seconds},
	}
	if l.Files != "" {
		properties["files"] = texts(text.Brief(l.Files, maxInputsText))
	}
	if about := kept[l.Kept].sandbox; about != "" {
		properties["sandbox"] = property{Type: "string", Description: about}
	}
	return text.JSON(struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}{"object", properties, []string{"code"}})
}

// someNames returns as many of the servers' names as fit into limit bytes of JSON, and how many
// more there are.
func someNames(servers []Server, limit int) string {
	var b strings.Builder
	size := 0
	for i, s := range servers {
		name := s.Name
		if i > 0 {
			name = ", " + name
		}
		if size += len(text.JSON(name)) - len(`""`); size > limit {
			fmt.Fprintf(&b, " and %d more", len(servers)-i)
			break
		}
		b.WriteString(name)
	}
	return strings.TrimSpace(b.String())
}
