package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func sandboxPythonCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "python ID", Short: "Run Python in a sandbox, with its variables, line by line from standard input",
		Long: "Run Python in a sandbox, with its variables, line by line from standard input, up to exit() " +
			"or its end.\n" +
			"An indented block ends with an empty line. Each statement is a call like the model's, which sees " +
			"what it\n" +
			"changes; it can call no tools.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.sandboxPython(cmd.Context(), args[0]) },
	}
}

// sandboxPython runs statements in a sandbox. It ends with 1 if the last one has failed.
func (a *app) sandboxPython(ctx context.Context, id string) error {
	out := newCodeOutput(a.io.Out.Code(), a.io.Err.Code())
	printed := func(m *jsonrpc.Message) {
		var c sandbox.Chunk
		if m.Method == bridge.UserPrinted && json.Unmarshal(m.Params, &c) == nil {
			out.take(c)
		}
	}
	return a.inSandbox(ctx, id, printed, func(call sandboxCall) error {
		lines, code := bufio.NewScanner(a.io.In), 0
		lines.Buffer(nil, sandbox.MaxCode)
		for {
			statement, more := a.statement(lines, id)
			switch strings.TrimSpace(statement) {
			case "exit", "exit()", "quit", "quit()":
				return exit.With(code)
			case "":
			default:
				failed, err := a.inPython(ctx, call, statement)
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
func (a *app) statement(lines *bufio.Scanner, id string) (statement string, more bool) {
	prompt, block := id+">>> ", false
	for {
		if a.io.AtTerminal() {
			_, _ = io.WriteString(a.io.Err, prompt)
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
func (a *app) inPython(ctx context.Context, call sandboxCall, statement string) (failed bool, err error) {
	var r struct {
		Status, Message string
		Error           struct{ Traceback string }
		Sandbox         struct{ State, Reason, Note string }
	}
	ctx, done := a.untilCtrlC(ctx)
	defer done()
	failed, err = call(ctx, catalog.RunPython, map[string]any{"code": statement}, &r)
	if errors.Is(err, errCtrlC) {
		a.io.Say("")
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if r.Error.Traceback != "" {
		a.io.Say(strings.TrimSuffix(text.Safe(r.Error.Traceback), "\n"))
	} else if failed {
		a.io.Say(text.Line(strings.TrimSpace(r.Status + ": " + r.Message)))
	}
	switch sandbox.State(r.Sandbox.State) {
	case sandbox.StateBefore:
		a.io.Say("the variables are as before this statement")
	case sandbox.StateLost:
		return true, fmt.Errorf("the sandbox has ended: %s", text.Line(r.Sandbox.Reason))
	}
	return failed, nil
}

// errCtrlC ends a command in a sandbox, and not the shell.
var errCtrlC = errors.New("the command was interrupted")

// untilCtrlC returns a context that SIGINT ends with errCtrlC, until done is called.
func (a *app) untilCtrlC(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(errCtrlC) }
	a.interrupts.Store(&end)
	return ctx, func() {
		a.interrupts.Store(nil)
		cancel(nil)
	}
}
