package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Python runs statements in a sandbox. It ends with 1 if the last one has failed.
func (c *Client) Python(ctx context.Context, id string) error {
	out := terminal.NewCodeOutput(c.Out.Code(), c.Err.Code())
	printed := func(m *jsonrpc.Message) {
		var c sandbox.Chunk
		if m.Method == bridge.UserPrinted && json.Unmarshal(m.Params, &c) == nil {
			out.Take(c.Stream, c.Text)
		}
	}
	return c.inSandbox(ctx, id, printed, func(call sandboxCall) error {
		lines, code := bufio.NewScanner(c.In), 0
		lines.Buffer(nil, sandbox.MaxCode)
		for {
			statement, more := c.statement(lines, id)
			switch strings.TrimSpace(statement) {
			case "exit", "exit()", "quit", "quit()":
				return exit.With(code)
			case "":
			default:
				failed, err := c.inPython(ctx, call, statement)
				if err != nil {
					return err
				}
				code = 0
				if failed {
					code = exit.Failed
				}
			}
			if !more {
				return errors.Join(lines.Err(), exit.With(code))
			}
		}
	})
}

// statement returns the next line, or the lines of a block up to an empty one. more says that the
// input hasn't ended.
func (c *Client) statement(lines *bufio.Scanner, id string) (statement string, more bool) {
	prompt, block := id+">>> ", false
	for {
		if c.AtTerminal() {
			_, _ = io.WriteString(c.Err, prompt)
		}
		if !lines.Scan() {
			if lines.Err() != nil { // half a block is no statement
				statement = ""
			}
			return statement, false
		}
		line := lines.Text()
		statement += line + "\n"
		trimmed := strings.TrimSpace(line)
		code, _, _ := strings.Cut(trimmed, " #")
		opens := strings.HasSuffix(trimmed, ":") || strings.HasSuffix(strings.TrimSpace(code), ":")
		block = block || opens || strings.HasPrefix(trimmed, "@")
		if !block || trimmed == "" {
			return statement, true
		}
		prompt = strings.Repeat(".", len(id)+3) + " "
	}
}

// inPython runs a statement, whose output comes meanwhile, and says why it has failed, and what
// became of the variables. SIGINT ends it.
func (c *Client) inPython(ctx context.Context, call sandboxCall, statement string) (failed bool, err error) {
	var r struct {
		Status, Message string
		Error           struct{ Traceback string }
		Sandbox         struct{ State, Reason, Note string }
	}
	ctx, done := c.Interrupts.until(ctx)
	defer done()
	failed, err = call(ctx, catalog.RunPython, map[string]any{"code": statement}, &r)
	if errors.Is(err, errCtrlC) {
		c.Say("")
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if r.Error.Traceback != "" {
		c.Say(strings.TrimSuffix(text.Safe(r.Error.Traceback), "\n"))
	} else if failed {
		c.Say(text.Line(strings.TrimSpace(r.Status + ": " + r.Message)))
	}
	switch sandbox.State(r.Sandbox.State) {
	case sandbox.StateBefore:
		c.Say("the variables are as before this statement")
	case sandbox.StateLost:
		return true, fmt.Errorf("the sandbox has ended: %s", text.Line(r.Sandbox.Reason))
	}
	return failed, nil
}
