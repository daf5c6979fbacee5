package bridge

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Everything here is read by models in hosts that cut: descriptions and instructions at 2,048 characters. All of
// it together stays under 900 tokens (bridge/cost), as it is paid for in every conversation.

const toolDescription = `Run Python 3 in a fresh sandbox: standard library only, no network, nothing is kept between calls. Its code calls the tools of the user's MCP servers: loop, filter and join over many calls in one run, and print only the answer.

A server is mcp_ALIAS, its tools are functions with keyword arguments:
` + toolExample + `
JSON arrives as dict or list, also where the server sends it as text; other text is a str. A tool that fails raises ToolError. Images in a last expression or display(r) show by themselves.
At once: import asyncio; a, b = await asyncio.gather(mcp_x.f(id=1), mcp_x.f(id=2)). In code with a top-level await, await every call.
When unsure: search_tools, or in code help(mcp_github.search_issues), or print one result first.
Files: save_artifact(name, data); the result says where they are.
Manual: ` + manualURI

// toolExample works on a server that declares no schema of its results and sends JSON as text.
const toolExample = `  found = mcp_github.search_issues(query="repo:o/r is:open")
  print([i["title"] for i in found["items"]])`

// maxToolNames and maxInstructionNames bound the servers' names in the tool and in the instructions, in bytes of JSON.
const (
	maxToolNames        = 60
	maxInstructionNames = 250
)

// besideOutput is how many characters a result may have beside what was printed: the traceback, notices
// and the names of files.
const besideOutput = 16 << 10

// maxInputsText bounds, in characters, what is said of the argument files.
const maxInputsText = 120

const runPythonName = "run_python"

// tool is run_python as it is listed.
func (b *Bridge) tool(c *catalog) mcp.Tool {
	t := mcp.NewToolWithRawSchema(runPythonName, toolDescription, b.inputSchema(c))
	t.Title = "Run Python"
	// Code may call any tool. Hosts show titles and hints to people; models get neither.
	t.Annotations = mcp.ToolAnnotation{
		ReadOnlyHint: new(false), DestructiveHint: new(true), IdempotentHint: new(false), OpenWorldHint: new(true),
	}
	if b.structured {
		mcp.WithOutputSchema[output.Outcome]()(&t)
	}
	t.Meta = mcp.NewMetaFromMap(map[string]any{
		// Claude Code shows results up to this size whole; above its own limit it shows 2 KB and a file's name.
		"anthropic/maxResultSizeChars": b.output*3/2 + besideOutput,
		"anthropic/alwaysLoad":         true, // one small tool that leads to all others is not to be searched for first
	})
	return t
}

// onlyReads is the hint of our other tools, by which hosts may call them unasked: they give what is known here, and change nothing. A
// server that a search starts is asked only which tools it has.
func onlyReads() mcp.ToolAnnotation {
	return mcp.ToolAnnotation{ReadOnlyHint: new(true), DestructiveHint: new(false), IdempotentHint: new(true), OpenWorldHint: new(false)}
}

type property struct {
	Type        string    `json:"type"`
	Items       *property `json:"items,omitempty"`
	Description string    `json:"description,omitempty"`
}

func (b *Bridge) inputSchema(c *catalog) json.RawMessage {
	servers := "Servers to use; default all, [] none."
	if names := someNames(c.open(), maxToolNames); names != "" {
		servers += " There are: " + names
	}
	schema := struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}{"object", map[string]property{
		"code":    {Type: "string"},
		"servers": {Type: "array", Items: &property{Type: "string"}, Description: servers},
		"timeout": {Type: "number", Description: fmt.Sprintf("Seconds; default %s, at most %s", seconds(b.timeout), seconds(b.maxTimeout))},
	}, []string{"code"}}
	if b.inputs != nil {
		schema.Properties[filesName] = property{Type: "array", Items: &property{Type: "string"},
			Description: text.Brief("Files to copy to "+sandbox.InputDir+" first, from "+b.inputs.Dirs(), maxInputsText)}
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		panic(err) // strings and booleans always encode
	}
	return raw
}

// someNames is as many of the servers' names as fit into so many bytes of JSON, and how many more there are.
func someNames(servers []entry, limit int) string {
	var b strings.Builder
	size := 0
	for i, e := range servers {
		name := e.name
		if i > 0 {
			name = ", " + name
		}
		encoded, err := json.Marshal(name)
		if err != nil {
			panic(err) // a string always encodes
		}
		if size += len(encoded) - len(`""`); size > limit {
			fmt.Fprintf(&b, " and %d more", len(servers)-i)
			break
		}
		b.WriteString(name)
	}
	return strings.TrimSpace(b.String())
}

// instructions are what a host tells its model of the whole server.
func instructions(c *catalog) string {
	var b strings.Builder
	b.WriteString(`run_python runs Python in a locked-down container. From there the code can call the tools of the MCP servers that the user has configured elsewhere, without their definitions being loaded here. Use it when a task needs one of those servers, several tool calls, or work on data that is too large to read: write one program that calls the tools, filters and joins what they return, and prints only the answer. search_tools finds which tools there are and how they are called.
`)
	if len(c.open()) == 0 {
		b.WriteString("No servers are configured at present; plain Python works.")
	} else {
		fmt.Fprintf(&b, "Servers, in quotes what they say of themselves: %s.", withPurposes(c))
		b.WriteString(` In code each is mcp_<alias> (its name in lower case, "_" for other characters): mcp_x.tool(key=value). mcp_x.resources and mcp_x.prompts have what a server offers besides tools.`)
	}
	return b.String()
}
