package console

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/docker/go-units"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Client carries out the user's commands.
type Client struct {
	*terminal.Streams
	State      string // directory of the user's state
	Interrupts *Interrupts
}

// sandboxRow is a sandbox of one of several bridges.
type sandboxRow struct {
	bridge.UserSandbox
	Bridge int `json:"bridge"` // its process
}

// withBridges calls do with the connections to all bridges, and with their sandboxes.
func (c *Client) withBridges(ctx context.Context, printed func(*jsonrpc.Message),
	do func(map[int]*bridgeConn, []sandboxRow) error) error {
	conns, err := dialBridges(ctx, c.State, printed)
	if err != nil {
		return err
	}
	byPID, rows := map[int]*bridgeConn{}, []sandboxRow{}
	for _, b := range conns {
		defer b.close()
		all, err := b.list(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				c.Say(fmt.Sprintf("the bridge with process %d has not answered for %v; its sandboxes are left out",
					b.pid, listTime))
			}
			continue // it has ended meanwhile
		}
		byPID[b.pid] = b
		for _, s := range all {
			rows = append(rows, sandboxRow{s, b.pid})
		}
	}
	return do(byPID, eachOnce(rows))
}

func (c *Client) List(ctx context.Context, asJSON bool) error {
	return c.withBridges(ctx, nil, func(_ map[int]*bridgeConn, rows []sandboxRow) error {
		if asJSON {
			return terminal.JSON(c.Out, rows)
		}
		if len(rows) == 0 {
			c.Say("there are no sandboxes")
			return nil
		}
		t := terminal.Table{Rows: [][]string{{"ID", "NAME", "STATUS", "TEMPLATE", "CALLS", "USED", "BRIDGE"}}}
		for _, r := range rows {
			t.Rows = append(t.Rows, r.cells())
		}
		c.Out.Screen().Table(t)
		return nil
	})
}

// cells returns what a table shows of a sandbox.
func (r sandboxRow) cells() []string {
	status, used := r.Status, units.HumanDuration(time.Since(r.Used))+" ago"
	if r.Busy {
		used = "now"
	}
	if r.Size > 0 {
		status += ", " + units.BytesSize(float64(r.Size))
	}
	return []string{r.ID, r.Name, status, r.Template, strconv.Itoa(r.Calls), used, strconv.Itoa(r.Bridge)}
}

// eachOnce returns rows with each saved sandbox once: all bridges that save in a directory have
// them, and one may have woken it.
func eachOnce(rows []sandboxRow) []sandboxRow {
	seen := map[string]bool{}
	for _, r := range rows {
		seen[r.ID] = seen[r.ID] || r.Size == 0
	}
	return slices.DeleteFunc(rows, func(r sandboxRow) bool {
		again := r.Size > 0 && seen[r.ID]
		seen[r.ID] = true
		return again
	})
}

// inSandbox calls do with a tool caller for one sandbox.
func (c *Client) inSandbox(ctx context.Context, id string, printed func(*jsonrpc.Message),
	do func(call sandboxCall) error) error {
	return c.withBridges(ctx, printed, func(conns map[int]*bridgeConn, rows []sandboxRow) error {
		var found []*bridgeConn
		for _, r := range rows {
			if r.ID == id {
				found = append(found, conns[r.Bridge])
			}
		}
		switch len(found) {
		case 0:
			return exit.Usage(fmt.Errorf("there is no sandbox %q; mcp-bridge sandbox list lists them", id))
		case 1:
			return do(func(ctx context.Context, tool string, args map[string]any,
				result any) (failed bool, err error) {
				return callTool(ctx, found[0], tool, id, args, result)
			})
		}
		return fmt.Errorf("%d bridges have a sandbox %q; end one of them", len(found), id)
	})
}

// sandboxCall calls a tool for a sandbox. failed says that the result is that of a call which was
// stopped half-way.
type sandboxCall func(ctx context.Context, tool string, args map[string]any, result any) (failed bool,
	err error)

func callTool(ctx context.Context, b *bridgeConn, tool, id string, args map[string]any,
	result any) (failed bool, err error) {
	args["sandbox_id"] = id
	raw, err := json.Marshal(args)
	if err != nil {
		return false, err
	}
	answer, err := b.rpc.Call(ctx, b.rpc.NewID(), bridge.UserCall,
		bridge.UserTool{Tool: tool, Sandbox: id, Arguments: raw})
	if err != nil {
		return false, err
	}
	var r struct {
		Content []mcp.TextContent
		IsError bool
		Struct  json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return false, err
	}
	if r.Struct == nil {
		why := "it failed"
		if len(r.Content) > 0 {
			why = text.Safe(r.Content[0].Text)
		}
		return false, errors.New(why)
	}
	return r.IsError, json.Unmarshal(r.Struct, result)
}

func (c *Client) Kill(ctx context.Context, id string) error {
	return c.inSandbox(ctx, id, nil, func(call sandboxCall) error {
		_, err := call(ctx, "sandbox_kill", map[string]any{}, &struct{}{})
		return err
	})
}

// workspace is where a sandbox's commands begin.
const workspace = "/workspace"

// shellTime is how long a command of a person may take, in milliseconds: the most there is.
const shellTime = 600_000

// Shell runs lines in a sandbox. It ends with the code of the last one.
func (c *Client) Shell(ctx context.Context, id string) error {
	out := terminal.NewCodeOutput(c.Out.Code(), c.Err.Code())
	var mute atomic.Bool // what is printed now was asked for by us
	printed := func(m *jsonrpc.Message) {
		var c sandbox.Chunk
		if m.Method == bridge.UserPrinted && !mute.Load() && json.Unmarshal(m.Params, &c) == nil {
			out.Take(c.Stream, c.Text)
		}
	}
	return c.inSandbox(ctx, id, printed, func(call sandboxCall) error {
		dir, code := workspace, 0
		lines := bufio.NewScanner(c.In)
		for c.prompt(id, dir); lines.Scan(); c.prompt(id, dir) {
			line := strings.TrimSpace(lines.Text())
			if with, is := exits(line, code); is {
				return exit.With(with)
			}
			if line == "" {
				continue
			}
			mute.Store(true)
			to, err := changed(ctx, call, dir, line)
			mute.Store(false)
			if err != nil {
				return err
			}
			if to != "" {
				dir, code = to, 0
				continue
			}
			if code, err = c.shellLine(ctx, call, dir, line); err != nil {
				return err
			}
		}
		if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return exit.With(code)
	})
}

// exits reports whether a line is exit, and with which code: its own, or that of the line before.
func exits(line string, last int) (code int, is bool) {
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != "exit" || len(words) > 2 {
		return 0, false
	}
	if len(words) == 2 {
		n, err := strconv.ParseUint(words[1], 10, 8)
		return int(n), err == nil
	}
	return last, true
}

// prompt asks for a line, at a terminal.
func (c *Client) prompt(id, dir string) {
	if c.AtTerminal() {
		fmt.Fprintf(c.Err, "%s:%s$ ", id, text.Line(dir))
	}
}

// changed returns the directory that a line changes to, empty if it is no cd, or one that fails: it
// is run as a command then, which says why.
func changed(ctx context.Context, call sandboxCall, dir, line string) (to string, err error) {
	if line != "cd" && !strings.HasPrefix(line, "cd ") {
		return "", nil
	}
	var r struct {
		Stdout string `json:"stdout"`
		Code   int    `json:"exit_code"`
	}
	failed, err := call(ctx, "sandbox_exec", map[string]any{"command": line + " >/dev/null && pwd", "cwd": dir},
		&r)
	if err != nil || failed || r.Code != 0 {
		return "", err
	}
	return strings.TrimSuffix(r.Stdout, "\n"), nil
}

// shellLine runs a command, whose output comes meanwhile, and returns its code. SIGINT ends it.
func (c *Client) shellLine(ctx context.Context, call sandboxCall, dir, line string) (code int, err error) {
	ctx, done := c.Interrupts.until(ctx)
	defer done()
	var r struct {
		Code    int    `json:"exit_code"`
		Message string `json:"message"`
	}
	failed, err := call(ctx, "sandbox_exec",
		map[string]any{"command": line, "cwd": dir, "timeout_ms": shellTime}, &r)
	if errors.Is(err, errCtrlC) {
		c.Say("")
		return exit.Interrupted, nil
	}
	if err != nil {
		return 0, err
	}
	if failed {
		c.Say(text.Line(r.Message))
		return exit.Failed, nil
	}
	return r.Code, nil
}

// of returns the sandbox and the path in what names a file in one.
func of(file string) (id, inside string, is bool) {
	id, inside, is = strings.Cut(file, ":")
	is = is && inside != "" && len(id) >= 4 && len(id) <= 8 && !strings.ContainsAny(id, `/\.`)
	return id, inside, is
}

func (c *Client) Copy(ctx context.Context, from, to string) error {
	source, inSource, out := of(from)
	target, inTarget, in := of(to)
	switch {
	case out == in:
		return exit.Usage(errors.New("one of the two must be a file in a sandbox, as in " +
			"k7f2:/workspace/out.csv, and the other one of yours"))

	case out:
		return c.inSandbox(ctx, source, nil,
			func(call sandboxCall) error { return copyOut(ctx, call, inSource, to) })
	}
	return c.inSandbox(ctx, target, nil,
		func(call sandboxCall) error { return copyIn(ctx, call, from, inTarget) })
}

// copyOut writes a file of a sandbox to a new file, or into a directory.
func copyOut(ctx context.Context, call sandboxCall, inside, to string) error {
	var r struct{ Content string }
	_, err := call(ctx, "sandbox_files_read", map[string]any{"path": inside, "encoding": "base64"}, &r)
	if err != nil {
		return err
	}
	data, err := base64.StdEncoding.DecodeString(r.Content)
	if err != nil {
		return err
	}
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		to = filepath.Join(to, path.Base(inside))
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already; remove it, or name another file", to)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func copyIn(ctx context.Context, call sandboxCall, from, inside string) error {
	info, err := os.Stat(from)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file", from)
	case info.Size() > sandbox.MaxWriteFile:
		return fmt.Errorf("%s has %d bytes; at most %d can be copied", from, info.Size(), sandbox.MaxWriteFile)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	_, err = call(ctx, "sandbox_files_list", map[string]any{"path": inside}, &struct{}{})
	if err == nil || strings.HasSuffix(inside, "/") { // it is a directory, or is to be one
		inside = strings.TrimSuffix(inside, "/") + "/" + filepath.Base(from)
	}
	_, err = call(ctx, "sandbox_files_write", map[string]any{"path": inside, "encoding": "base64",
		"content": base64.StdEncoding.EncodeToString(data)}, &struct{}{})
	return err
}
