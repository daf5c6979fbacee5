// Package sandboxtools is the MCP tools that work on sandboxes without run_python: they create
// them, run shell commands in them, and read and write their files. Their names, arguments, results
// and errors are those of Superserve's MCP server, so that prompts written for that one work.
// Arguments for what there isn't here are refused with a sentence, and don't stand in the
// definitions.
//
// It doesn't decide who may call a tool, and records nothing.
package sandboxtools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/packages"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Templates are the environments from which sandboxes are made; *packages.Chooser has them. The
// methods start an engine that is at rest, which p hears of, and call slow before what takes long.
type Templates interface {
	// Named returns an environment, nil for Python's own modules alone. No name means the one of code
	// that asks for none.
	Named(ctx context.Context, name string, slow func(), p runtime.Progress) (*sandbox.Environment, error)
	Built(ctx context.Context, p runtime.Progress) ([]packages.Template, error)
	Create(ctx context.Context, name string, wanted []string, slow func(),
		p runtime.Progress) (packages.Template, error)
}

// Config is what Tools are made from. All fields are required.
type Config struct {
	Registry  *sandboxes.Registry
	Templates Templates
	Reads     bool // there is a tool that reads it
	Limits    runtime.Limits

	MostCommand time.Duration // that a command may have
}

// Tools answers calls of the tools. It is safe for concurrent use.
type Tools struct{ cfg Config }

// New returns Tools.
func New(cfg Config) *Tools { return &Tools{cfg} }

// Caller is who calls a tool, and what hears of the call. All fields but
// MostRead and User are required.
type Caller struct {
	ID    string // of the call, for read_output
	Owner string // of the sandboxes

	Principal string      // whose share of the runs new sandboxes take; empty for who has no share but all
	Output    output.View // takes what a result doesn't show

	Wait func(ctx context.Context) error // for the calls that came before
	Pass func()                          // lets the next one go on; may be called more than once

	Progress runtime.Progress
	Printed  func(sandbox.Chunk)

	MostRead int64 // bytes of a file that is read; 0 for the usual bound
	User     bool  // it is the bridge's own user, at the command line
}

// Report is what is recorded of a call.
type Report struct {
	Sandbox string // its id; empty for none
	Code    string // of the error; empty for none
	Bytes   int    // of the result
}

// tool is one tool.
type tool struct {
	name, title, about string
	args, gives        []field
	hints              mcp.ToolAnnotation
	do                 func(*call) (any, error)
}

// tools returns all tools. They are in the order in which a caller needs them.
func tools() []tool {
	return slices.Concat(lifeTools(), execTools(), fileTools(), templateTools())
}

// Names returns the names of all tools.
func Names() []string {
	var names []string
	for _, t := range tools() {
		names = append(names, t.name)
	}
	return names
}

// Definitions returns the tools as they are listed.
func Definitions() []mcp.Tool {
	var all []mcp.Tool
	for _, t := range tools() {
		d := mcp.NewToolWithRawSchema(t.name, t.about, schema(t.args))
		d.RawOutputSchema = schema(t.gives)
		d.Title, d.Annotations = t.title, t.hints
		d.Annotations.OpenWorldHint = new(t.name == createTemplate) // which fetches packages
		all = append(all, d)
	}
	return all
}

// hints returns annotations of a tool that doesn't act on the world outside: commands have no
// network, and can't call the user's servers.
func hints(readOnly, destructive, idempotent bool) mcp.ToolAnnotation {
	return mcp.ToolAnnotation{
		ReadOnlyHint: new(readOnly), DestructiveHint: new(destructive), IdempotentHint: new(idempotent),
	}
}

// call is a call of a tool.
type call struct {
	given
	*Tools
	caller Caller
	ctx    context.Context
	report Report
	beside []string // what is said of the sandbox: that the call has woken it, or a Guest's Note
}

// A partial is the result of a tool that has failed half-way: what there is of it, as an error.
type partial struct{ result any }

func (*partial) Error() string { return "the command was stopped" }

// Call answers a call of the tool name. It ends soon after ctx.
func (t *Tools) Call(ctx context.Context, name string, raw json.RawMessage,
	by Caller) (*mcp.CallToolResult, Report) {
	all := tools()
	at := slices.IndexFunc(all, func(t tool) bool { return t.name == name })
	c := &call{Tools: t, caller: by, ctx: ctx}
	result, err := any(nil), c.decode(all[at], raw)
	if err == nil {
		result, err = all[at].do(c)
	}
	if err == nil && c.wrong != nil {
		err = c.wrong
	}
	var half *partial
	failed := errors.As(err, &half)
	switch {
	case failed:
		result, c.report.Code = half.result, codeStopped
	case err != nil:
		said, code := c.told(name, err)
		c.report.Code = code
		c.report.Bytes = len(said)
		return c.telling(mcp.NewToolResultError(said)), c.report
	}
	structured := text.JSON(result)
	shown := structured
	if file, is := result.(content); is {
		shown = file.summary()
	}
	res := mcp.NewToolResultText(string(shown))
	c.telling(res)
	res.RawStructuredContent = structured
	res.IsError = failed
	c.report.Bytes = len(structured)
	return res, c.report
}

// telling adds to a result what else happened.
func (c *call) telling(res *mcp.CallToolResult) *mcp.CallToolResult {
	for _, s := range c.beside {
		res.Content = append(res.Content, mcp.NewTextContent(s))
	}
	return res
}

// enter returns the caller's turn in the sandbox that the call names.
func (c *call) enter() (*sandboxes.Call, error) {
	id := c.id()
	if c.wrong != nil {
		return nil, c.wrong
	}
	if err := c.caller.Wait(c.ctx); err != nil {
		return nil, err
	}
	return c.cfg.Registry.Enter(c.ctx, c.caller.Owner, id, c.caller.Pass)
}

// within calls do with the sandbox that the call names, once it is its turn.
func (c *call) within(do func(sandboxes.Guest) error) error {
	box, err := c.enter()
	if err != nil {
		return err
	}
	defer box.Leave()
	tell := func(s string) { c.beside = append(c.beside, fmt.Sprintf("[sandbox %s: %s]", box.ID(), s)) }
	err = box.Do(c.ctx, func(g sandboxes.Guest) error {
		err := do(g)
		if note := g.Note(); note != "" {
			tell(text.Safe(note))
		}
		return err
	})
	if box.Woken {
		tell(text.Safe(output.Back(box.Missing())))
	}
	return err
}

// id returns the argument sandbox_id.
func (c *call) id() string {
	c.report.Sandbox = c.text("sandbox_id")
	return c.report.Sandbox
}
