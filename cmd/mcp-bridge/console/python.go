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

// statement returns the next line, with those that its open brackets, triple quotes or backslash
// need, or the lines of a block up to an empty one. more says that the input hasn't ended.
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
		if !isOpen(statement) && (!block || trimmed == "") {
			return statement, true
		}
		prompt = strings.Repeat(".", len(id)+3) + " "
	}
}

// isOpen reports whether a statement goes on in the next line, by the brackets and triple quotes
// that are open in it, or by a backslash.
func isOpen(statement string) bool {
	depth, quote := 0, ""
	for rest := statement; rest != ""; {
		size := 1
		switch {
		case rest[0] == '\\' && rest[1:] == "\n":
			return true
		case rest[0] == '\\' && len(rest) > 1:
			size = 2
		case quote == "" && rest[0] == '#':
			size = max(strings.IndexByte(rest, '\n'), 1)
		case quote != "" && strings.HasPrefix(rest, quote):
			size, quote = len(quote), ""
		case quote == "" && (rest[0] == '"' || rest[0] == '\''):
			quote = rest[:1]
			if triple := strings.Repeat(quote, 3); strings.HasPrefix(rest, triple) {
				quote = triple
			}
			size = len(quote)
		case len(quote) == 1 && rest[0] == '\n': // an error, which Python tells
			quote = ""
		case quote == "" && strings.IndexByte("([{", rest[0]) >= 0:
			depth++
		case quote == "" && strings.IndexByte(")]}", rest[0]) >= 0:
			depth--
		}
		rest = rest[size:]
	}
	return depth > 0 || len(quote) == 3
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
