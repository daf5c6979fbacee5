package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// callTimeout bounds one call. None takes nearly that long; one that does has failed.
const callTimeout = 2 * time.Minute

// A client speaks MCP with a program over its pipes, one JSON-RPC message a line. Its methods may
// be called concurrently.
type client struct {
	cmd    *exec.Cmd
	stderr *tail

	next    atomic.Int64
	waiting sync.Map // from an id, as it is written, to the chan message of who waits for the answer

	mu    sync.Mutex
	stdin io.WriteCloser

	ended chan struct{} // closed when its output has ended
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// dial starts a program and says nothing to it yet.
func dial(cmd *exec.Cmd) (*client, error) {
	c := &client{cmd: cmd, stderr: &tail{limit: 4 << 10}, ended: make(chan struct{})}
	cmd.Stderr = c.stderr
	cmd.WaitDelay = 20 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go c.read(stdout) // until the program ends, which close waits for
	return c, nil
}

// initialize is the first exchange of a client with a server.
func (c *client) initialize(ctx context.Context) error {
	_, err := c.request(ctx, "initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "bench", "version": "0"},
	})
	if err != nil {
		return err
	}
	return c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

func (c *client) read(r io.Reader) {
	defer close(c.ended)
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil || m.Method != "" {
			continue
		}
		if answer, ok := c.waiting.LoadAndDelete(string(m.ID)); ok {
			answer.(chan message) <- m // request puts nothing else into it
		}
	}
}

func (c *client) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.stdin.Write(append(b, '\n'))
	return err
}

func (c *client) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer := make(chan message, 1)
	id := strconv.FormatInt(c.next.Add(1), 10)
	c.waiting.Store(id, answer)
	defer c.waiting.Delete(id) // where nothing came
	err := c.send(map[string]any{
		"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params,
	})
	if err != nil {
		return nil, c.failed("asking for %s: %w", method, err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, c.failed("%s: JSON-RPC error %d: %s", method, m.Error.Code, m.Error.Message)
		}
		return m.Result, nil
	case <-c.ended:
		return nil, c.failed("the program ended before it answered %s", method)
	case <-ctx.Done():
		return nil, c.failed("waiting for the answer to %s: %w", method, context.Cause(ctx))
	}
}

// failed returns an error with the end of what the program has said on standard error.
func (c *client) failed(format string, a ...any) error {
	return fmt.Errorf("%w; %s", fmt.Errorf(format, a...), c.stderr)
}

// tool calls a tool and returns the text of its result; a result that is an error is one.
func (c *client) tool(ctx context.Context, name string, args map[string]any) (string, error) {
	text, failed, err := c.result(ctx, name, args)
	if err == nil && failed {
		return "", c.failed("%s failed: %.500s", name, text)
	}
	return text, err
}

// result calls a tool and returns the text of its result, and whether that is an error.
func (c *client) result(
	ctx context.Context, name string, args map[string]any,
) (text string, failed bool, err error) {
	raw, err := c.request(ctx, "tools/call", map[string]any{"name": name, "arguments": args})
	if err != nil {
		return "", false, err
	}
	var r struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", false, c.failed("%w in %.200s", err, raw)
	}
	var b strings.Builder
	for _, part := range r.Content {
		b.WriteString(part.Text)
	}
	return b.String(), r.IsError, nil
}

// cancelled calls run_python and cancels that after a while.
func (c *client) cancelled(ctx context.Context, args map[string]any, after time.Duration) error {
	id := c.next.Add(1)
	err := c.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call",
		"params": map[string]any{"name": "run_python", "arguments": args}})
	if err != nil || !sleep(ctx, after) {
		return errors.Join(err, context.Cause(ctx))
	}
	return c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled",
		"params": map[string]any{"requestId": id}})
}

// python runs code that must print want, or anything where want is empty. It returns what was
// printed and how long the call took.
func (c *client) python(
	ctx context.Context, code, want string, more map[string]any,
) (string, time.Duration, error) {
	args := map[string]any{"code": code}
	for k, v := range more {
		args[k] = v
	}
	begin := time.Now()
	out, err := c.tool(ctx, "run_python", args)
	took := time.Since(begin)
	if err == nil && want != "" && out != want {
		err = c.failed("the code printed %.100q, not %q", out, want)
	}
	return out, took, err
}

// pid is the program's.
func (c *client) pid() int { return c.cmd.Process.Pid }

// close ends the program as a client does, by the end of its input.
func (c *client) close() error {
	c.mu.Lock()
	c.stdin.Close()
	c.mu.Unlock()
	select {
	case <-c.ended:
	case <-time.After(c.cmd.WaitDelay):
		late := c.failed("%s did not end within %v of its input's end", c.cmd.Path, c.cmd.WaitDelay)
		return errors.Join(late, c.cmd.Process.Kill(), c.cmd.Wait())
	}
	if err := c.cmd.Wait(); err != nil {
		return c.failed("%s: %w", c.cmd.Path, err)
	}
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	mu    sync.Mutex
	kept  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if n := len(t.kept) - t.limit; n > 0 {
		t.kept = t.kept[n:]
	}
	return len(p), nil
}

// String is a clause for an error.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if said := bytes.TrimSpace(t.kept); len(said) > 0 {
		return "it said: " + string(said)
	}
	return "it said nothing"
}
