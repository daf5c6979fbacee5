// Command inprocess is the first of mcp-bridge's retired prototypes: the code runs in the bridge's
// own process, in an embedded interpreter (Starlark, a small Python). Run it and see what that
// could not stop; ../README.md has the output.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// maxSteps is the prototype's wall against endless loops: it bounds the interpreter's own steps,
// nothing else.
const maxSteps = 50_000_000

// dialect is as near to Python as Starlark comes.
var dialect = &syntax.FileOptions{While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// prototype is the bridge as it was then.
type prototype struct {
	notes string                             // the one directory that code may read
	tool  func(context.Context) (int, error) // stands for a call to an MCP server
}

// run executes code until it ends, has used up its steps, or ctx does and the interpreter notices.
// A panic in it or in a builtin becomes an error, as far as Go lets panics be caught.
func (p *prototype) run(ctx context.Context, code string) (printed string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	var out strings.Builder
	thread := &starlark.Thread{Name: "code", Print: func(_ *starlark.Thread, s string) { fmt.Fprintln(&out, s) }}
	thread.SetMaxExecutionSteps(maxSteps)
	defer context.AfterFunc(ctx, func() { thread.Cancel("timeout") })()

	builtins := starlark.StringDict{
		"call_tool": starlark.NewBuiltin("call_tool", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple,
			[]starlark.Tuple) (starlark.Value, error) {
			n, err := p.tool(ctx)
			return starlark.MakeInt(n), err
		}),
		"read_note": starlark.NewBuiltin("read_note", func(_ *starlark.Thread, b *starlark.Builtin,
			args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			var name string
			if err := starlark.UnpackArgs(b.Name(), args, kw, "name", &name); err != nil {
				return nil, err
			}
			if strings.HasPrefix(name, "/") {
				return nil, errors.New("only names below the directory of notes")
			}
			text, err := os.ReadFile(filepath.Join(p.notes, name)) // the careless line: nothing stands behind it
			return starlark.String(text), err
		}),
	}
	_, err = starlark.ExecFileOptions(dialect, thread, "code", code, builtins)
	return out.String(), err
}
