package bridge

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

const (
	manualURI  = "resource://mcp-bridge/capabilities"
	manualMIME = "text/markdown"

	// otherManualURI is what the Python project with the same purpose calls its manual.
	otherManualURI = "resource://mcp-server-code-execution-mode/capabilities"
)

// maxProblems is how many problems the manual lists before it only counts the rest.
const maxProblems = 20

const manualText = `# What code in run_python sees

A run is one Python 3 process in a container of its own: no network, a read-only root, nothing of the user's
environment or files. It may write to /workspace, its working directory, and /tmp, which are small. Nothing is kept between runs.

## Calling tools

    page = mcp_github.list_issues(owner="o", repo="r")     # mcp_<alias>.<tool alias>(keyword=argument)
    page = mcp_servers["github"].list_issues(owner="o", repo="r")   # by the server's real name
    page = mcp_github["list-issues"](owner="o", repo="r")  # by the tool's real name

- Alias: the name in lower case, with "_" for every run of other characters than a-z, 0-9 and "_"; "_" before a digit in front, and
  behind a keyword or builtin (print_, quit_); "__2", "__3" where two names would be the same; "tool" without a letter.
- Plain code waits for the value. Where an event loop runs, and that is everywhere in code with a top-level await, the call returns an awaitable:
  ` + "`import asyncio; a, b = await asyncio.gather(mcp_x.f(id=1), mcp_x.f(id=2))`" + ` makes both calls at once. Threads work too.
- The value is what the tool declares as its result, without the {"result": …} that some server
  libraries put around it. Where a tool declares none and its only text is one JSON object or array,
  the value is that dict or list: issues[0]["title"]. Any other text is a str. Big integers stay exact.
  A failed call raises ToolError, with .server, .tool, .code and .content.
- A dict, list or str that a tool gave also has .text, .content, .structured (as it was sent), .json(),
  .images, .audio and .files (lists whose items have .data and .mime), .resources and .links.
  json.loads takes it, and result["content"][0]["text"] works unless the value has such a key itself.
  A number, True, False or None has no attributes: it is the value alone. Copies are plain values.
- A result's images are shown when it is the last expression, and by display(r). print(r) says how
  many there are. save_artifact("shot.png", r) makes files of them.
- One dict may hold all arguments, as in mcp_github.list_issues({"owner": "o", "repo": "r"}), unless
  the first parameter itself takes a dict.
- No import is needed. These work all the same: import mcp_github; from mcp_github import list_issues;
  from mcp import github; from mcp.servers.github import list_issues. mcp.call_tool is
  runtime.call_tool.
- ` + "`mcp_x.f.options(timeout=5)(id=1)`" + ` raises ToolTimeout when no answer comes in 5 s. A call that is no longer awaited is cancelled.
- ` + "`mcp_x.f.options(progress=seen)(id=1)`" + ` calls seen(progress, total, message) when the server says how far it is.
- A wrong name says which names there are and the nearest one.
- A server is started when the code first touches it, and stays for later runs.
- Argument ` + "`servers`" + ` of run_python: absent = all servers below; a list = only these; [] = none. No code can widen it.

## Finding tools

    from mcp import runtime                      # the bare name runtime works too
    runtime.list_servers()                       # names that this run may call
    runtime.discovered_servers(detailed=True)    # name and description of all that are configured
    runtime.describe_server("github")            # name, alias, description, its tools with their schemas; never needs await
    runtime.search_tool_docs("create issue")     # what fits best, of all servers, with signatures: limit=5, detail="full"; "cached" where
                                                 # that is what a server said at "asOf" and it has not been asked since
    runtime.query_tool_docs("github", "list-issues")   # the same of one tool, or of all of a server
    runtime.list_tools("github")                 # name, alias, description, inputSchema, outputSchema of each tool
    runtime.call_tool("github", "list-issues", {"owner": "o"})
    runtime.load_server("github")                # asks it for its tools anew
    runtime.capability_summary()                 # this, in a few lines
    dir(mcp_github)                              # the tools' aliases
    help(mcp_github.list_issues)                 # its signature, its parameters, what it returns
    open("/ipc/servers/github.py").read()        # all of a server's tools as typed Python declarations

What a server offers besides tools, where it does:

    mcp_github.resources.list()                  # dicts with uri, name, mimeType; .templates() has those with parameters
    mcp_github.resources.read("repo://o/r/README.md")   # a text is a str, a binary one bytes, both with .uri and .mime; several are a list
    mcp_github.prompts.list()                    # dicts with name, description, arguments
    mcp_github.prompts.get("review", pull="12")  # a dict with messages
    mcp_github.prompts.complete("review", "pull", "1")  # proposed values that begin so; resources.complete(template, parameter, beginning)

Arguments are checked against the tool's schema before they are sent. An optional one that is None isn't sent.

## What comes back

- stdout as it was printed, the value of a last expression (not behind a semicolon), then stderr, then, unless the code ended well, a line "status: …" and the traceback.
- Status: ok; error (an exception); exit n (sys.exit, os._exit, a signal); timeout; memory_limit; cancelled; engine (the
  container engine failed while the code ran). All but ok are errors. What was printed before is kept in every case. When the code
  was not run at all: validation_error (wrong arguments); unavailable (the machine isn't ready); busy (too many runs at a time).
- Very long output is cut in the middle. A mark says how much is missing and how to read it: read_output(run, offset, limit), a tool of its
  own. Of each run some megabytes are kept, of all runs the last few dozen.
- display(x): matplotlib figures and PIL images as images, DataFrames as text, bytes or str with a type as in display(data, mime="image/png"),
  else what the object's own _repr_…_ methods give, or its repr. Open matplotlib figures are shown at the end, and by plt.show().
- save_artifact(name, data, mime=None) hands over a file: bytes, str, a path, a figure, an image, a
  DataFrame, a dict or list (as JSON). It returns the name that the file got. Of a tool's result it
  takes the images for the name of an image, the audio for that of audio, and the text or data for
  any other. Several become name-1, name-2 and so on, and a list of names is returned.
  Files left in /workspace/out are handed over too, however the run ends. Together a run may hand over 100 files with 16 MiB.
- Images come back as images, other files as links mcp-bridge://runs/<run>/<name>, for resources/read, until newer ones need the room.
  All are written to a directory of the user's too, unless that is switched off; the result says where.
- Where run_python has an argument files, the files that it names are in /workspace/in when the code begins.
`

func (b *Bridge) manualResource() mcp.Resource {
	return mcp.NewResource(manualURI, "capabilities",
		mcp.WithResourceTitle("What code in run_python sees"),
		mcp.WithResourceDescription("Manual of the sandbox: calling tools, finding them, output, limits, and the configured servers."),
		mcp.WithMIMEType(manualMIME))
}

// manualsOtherName has a request for otherManualURI, which isn't listed, answered with the manual.
func manualsOtherName(_ context.Context, _ any, req *mcp.ReadResourceRequest) {
	if req.Params.URI == otherManualURI {
		req.Params.URI = manualURI
	}
}

func (b *Bridge) readManual(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: manualURI, MIMEType: manualMIME, Text: b.manual()}}, nil
}

// manual is the text with this bridge's limits, servers and problems. It holds no command, argument or environment of a server.
func (b *Bridge) manual() string {
	var m strings.Builder
	c := b.catalog()
	m.WriteString(manualText)
	fmt.Fprintf(&m, "- A run has %s s unless `timeout` asks for more, at most %s s. The time of its tool calls counts; starting a server and getting the container image don't.\n",
		seconds(b.timeout), seconds(b.maxTimeout))
	m.WriteString("\n## Servers\n\n")
	if len(c.servers) == 0 {
		m.WriteString("None is configured. `mcp-bridge servers` shows where was looked.\n")
	}
	b.writeServers(&m, c, false)
	return m.String()
}

// writeServers lists the servers, and what is configured and can't be used, with the next step if asked for.
func (b *Bridge) writeServers(m *strings.Builder, c *catalog, next bool) {
	for _, e := range c.servers {
		fmt.Fprintf(m, "- %s: `mcp_%s`", text.Line(e.name), e.alias)
		if e.description != "" {
			fmt.Fprintf(m, " – %s", text.Line(e.description))
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
