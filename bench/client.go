package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// callTimeout bounds one call. None takes nearly that long; one that does has failed.
const callTimeout = 2 * time.Minute

// endTimeout bounds the end of a program.
const endTimeout = 20 * time.Second

// A client speaks MCP with the bridge or with a server. Its methods may be called concurrently.
type client struct {
	wire
	cmd   *exec.Cmd
	ready time.Duration // from its start to the answer to initialize
	said  *tail         // on standard error
	next  atomic.Int64
}

// A wire carries JSON-RPC messages to a program.
type wire interface {
	// ask sends a request, and returns the answer to it.
	ask(context.Context, message) (message, error)
	// tell sends a notification.
	tell(context.Context, message) error
	// end has the program end.
	end() error
}

// A message is one of JSON-RPC.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      int64           `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// initialize makes the first exchange of a client with a server.
func (c *client) initialize(ctx context.Context) error {
	_, err := c.request(ctx, "initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "bench", "version": "0"},
	})
	if err != nil {
		return err
	}
	return c.tell(ctx, message{JSONRPC: "2.0", Method: "notifications/initialized"})
}

// request returns the result of a method. It cancels the request when ctx ends.
func (c *client) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id := c.next.Add(1)
	answer, err := c.ask(ctx, message{JSONRPC: "2.0", ID: id, Method: method, Params: params})
	switch {
	case ctx.Err() != nil:
		late, stop := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer stop()
		told := c.tell(late, message{JSONRPC: "2.0",
			Method: "notifications/cancelled", Params: map[string]any{"requestId": id}})
		return nil, c.failed("%s: %w", method, errors.Join(ctx.Err(), told))
	case err != nil:
		return nil, c.failed("%s: %w", method, err)
	case answer.Error != nil:
		return nil, c.failed("%s: JSON-RPC error %d: %s", method, answer.Error.Code, answer.Error.Message)
	}
	return answer.Result, nil
}

// failed returns an error with the end of what the program has said on standard error.
func (c *client) failed(format string, a ...any) error {
	return fmt.Errorf("%w; %s", fmt.Errorf(format, a...), c.said)
}

// tool calls a tool and returns the text of its result; a result that is an error is one.
func (c *client) tool(ctx context.Context, name string, args map[string]any) (string, error) {
	raw, err := c.request(ctx, "tools/call", map[string]any{"name": name, "arguments": args})
	if err != nil {
		return "", err
	}
	var r struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", c.failed("%w in %.200s", err, raw)
	}
	var b strings.Builder
	for _, part := range r.Content {
		b.WriteString(part.Text)
	}
	if r.IsError {
		return "", c.failed("%s failed: %s", name, &b)
	}
	return b.String(), nil
}

// python runs code, and returns what it printed and how long the call took.
func (c *client) python(
	ctx context.Context, code string, args map[string]any,
) (string, time.Duration, error) {
	all := map[string]any{"code": code}
	maps.Copy(all, args)
	begin := time.Now()
	out, err := c.tool(ctx, "run_python", all)
	return out, time.Since(begin), err
}

// printOne is the code of calls that have nothing to do.
const printOne = "print(1)"

// noServers is for calls that use none of the user's.
var noServers = map[string]any{"servers": []string{}}

// one runs printOne in a container that goes with the call. It is a taker.
func (c *client) one(ctx context.Context) (time.Duration, error) {
	return c.prints(ctx, printOne, "1\n", noServers)
}

// prints runs code that must print something, and returns how long the call took.
func (c *client) prints(
	ctx context.Context, code, want string, args map[string]any,
) (time.Duration, error) {
	out, took, err := c.python(ctx, code, args)
	if err == nil && out != want {
		err = c.failed("the code printed %.200q, not %q", out, want)
	}
	return took, err
}

// close ends the program and waits for it.
func (c *client) close() error {
	late := time.AfterFunc(endTimeout, func() { _ = c.cmd.Process.Kill() }) // Wait tells of it
	defer late.Stop()
	if err := errors.Join(c.end(), c.cmd.Wait()); err != nil {
		return c.failed("the end of %s: %w", c.cmd.Path, err)
	}
	return nil
}

// dial starts a program and initializes a session over its pipes.
func dial(ctx context.Context, cmd *exec.Cmd) (*client, error) {
	begin := time.Now()
	p := &pipes{ended: make(chan struct{})}
	c := &client{wire: p, cmd: cmd, said: &tail{}}
	cmd.Stderr, cmd.WaitDelay = c.said, endTimeout
	stdin, err := cmd.StdinPipe()
	stdout, failed := cmd.StdoutPipe()
	if err := cmp.Or(err, failed, cmd.Start()); err != nil {
		return nil, err
	}
	p.stdin = stdin
	go p.read(stdout) // until the program ends, which close waits for
	if err := c.initialize(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.ready = time.Since(begin)
	return c, nil
}

// pipes carry one message a line.
type pipes struct {
	waiting sync.Map      // from an id to the chan message of the request
	ended   chan struct{} // closed when the program's output has ended

	mu    sync.Mutex
	stdin io.WriteCloser
}

func (p *pipes) read(r io.Reader) {
	defer close(p.ended)
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
		if answer, ok := p.waiting.LoadAndDelete(m.ID); ok {
			answer.(chan message) <- m // ask puts nothing else into it
		}
	}
}

func (p *pipes) ask(ctx context.Context, m message) (message, error) {
	answer := make(chan message, 1)
	p.waiting.Store(m.ID, answer)
	defer p.waiting.Delete(m.ID) // where nothing came
	if err := p.tell(ctx, m); err != nil {
		return message{}, err
	}
	select {
	case m := <-answer:
		return m, nil
	case <-p.ended:
		return message{}, errors.New("the program ended before it answered")
	case <-ctx.Done():
		return message{}, context.Cause(ctx)
	}
}

func (p *pipes) tell(_ context.Context, m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err = p.stdin.Write(append(b, '\n'))
	return err
}

// end ends the program as clients do, by the end of its input.
func (p *pipes) end() error {
	err := p.stdin.Close()
	<-p.ended
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const limit = 2 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(len(t.kept)-limit, 0):]
	return len(p), nil
}

// String is a clause for an error.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return "it said: " + string(t.kept)
}
