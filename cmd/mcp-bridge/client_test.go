package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// client talks to a bridge over its pipes.
type client struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser

	killed bool // by the test, which has waited for it

	mu      sync.Mutex
	next    int
	waiting map[string]chan message
	notes   chan message    // notifications; dropped when no test takes them
	hello   json.RawMessage // the result of initialize
	ended   chan struct{}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// serve starts a bridge and initializes it. It is ended with the test, and must then be gone with a
// code of 0.
func serve(t *testing.T, cmd *exec.Cmd) *client {
	t.Helper()
	return serveTo(t, cmd, map[string]any{})
}

// serveTo is serve for a client with capabilities.
func serveTo(t *testing.T, cmd *exec.Cmd, capabilities map[string]any) *client {
	t.Helper()
	c := &client{t: t, cmd: cmd, waiting: map[string]chan message{}, notes: make(chan message, 1000),
		ended: make(chan struct{})}
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if cmd.Stderr == nil {
		cmd.Stderr = logFile(t)
	}
	must(t, cmd.Start())
	go c.read(stdout)
	t.Cleanup(c.close)
	c.hello = c.request("initialize", map[string]any{"protocolVersion": "2025-11-25",
		"capabilities": capabilities, "clientInfo": map[string]any{"name": "test", "version": "0"}}).Result
	c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return c
}

func (c *client) close() {
	c.stdin.Close()
	<-c.ended
	if c.killed {
		return
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("the bridge ended with %v", err)
	}
}

func (c *client) read(r io.Reader) {
	defer close(c.ended)
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			c.t.Errorf("the bridge wrote what is no message: %.200s", line)
			return
		}
		if m.Method != "" {
			select {
			case c.notes <- m:
			default:
			}
			continue
		}
		c.mu.Lock()
		ch := c.waiting[string(m.ID)]
		delete(c.waiting, string(m.ID))
		c.mu.Unlock()
		if ch != nil {
			ch <- m
		}
	}
}

func (c *client) send(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.stdin.Write(append(b, '\n')); err != nil {
		c.t.Error(err)
	}
}

// start sends a request and returns where its answer comes.
func (c *client) start(method string, params any) (id int, answer <-chan message) {
	ch := make(chan message, 1)
	c.mu.Lock()
	c.next++
	id = c.next
	c.waiting[fmt.Sprint(id)] = ch
	c.mu.Unlock()
	c.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id, ch
}

func (c *client) request(method string, params any) message {
	c.t.Helper()
	_, answer := c.start(method, params)
	select {
	case m := <-answer:
		return m
	case <-c.ended:
		c.t.Errorf("the bridge ended before it answered %s", method)
		return message{}
	}
}

// answer is a tool result as a host sees it.
type answer struct {
	Text    string
	IsError bool
}

func parseAnswer(t *testing.T, m message) answer {
	t.Helper()
	var r struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	if m.Error != nil {
		t.Errorf("JSON-RPC error %d: %s", m.Error.Code, m.Error.Message)
		return answer{}
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		t.Errorf("%v in %.200s", err, m.Result)
	}
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.Text)
	}
	return answer{b.String(), r.IsError}
}

// python calls run_python.
func (c *client) python(code string, more map[string]any) answer {
	c.t.Helper()
	args := map[string]any{"code": code}
	maps.Copy(args, more)
	return parseAnswer(c.t, c.request("tools/call", map[string]any{"name": "run_python", "arguments": args}))
}

// asked calls run_python, has the client answer what it is asked by a method with a result, and
// returns the call's answer and the parameters of what was asked.
func (c *client) asked(method, result, code string, more map[string]any) (got answer, params []string) {
	c.t.Helper()
	args := map[string]any{"code": code, "timeout": 60}
	maps.Copy(args, more)
	_, done := c.start("tools/call", map[string]any{"name": "run_python", "arguments": args})
	for late := time.After(2 * time.Minute); ; {
		select {
		case m := <-c.notes:
			if m.Method == method {
				params = append(params, string(m.Params))
				c.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": json.RawMessage(result)})
			}
		case m := <-done:
			return parseAnswer(c.t, m), params
		case <-late:
			c.t.Fatal("no answer came")
		}
	}
}

// startLong starts a run that would last for a hundred seconds, and returns once its code has
// printed "up". It may have more arguments.
func (c *client) startLong(more ...map[string]any) (id int, answer <-chan message) {
	c.t.Helper()
	args := map[string]any{"code": "print('up', flush=True)\nimport time; time.sleep(100)",
		"servers": []string{}, "timeout": 120}
	for _, m := range more {
		maps.Copy(args, m)
	}
	token := rand.Text() // reports of an earlier run may still be there
	id, answer = c.start("tools/call", map[string]any{
		"name": "run_python", "arguments": args, "_meta": map[string]any{"progressToken": token},
	})
	for {
		select {
		case m := <-c.notes:
			if strings.Contains(string(m.Params), token) && strings.Contains(string(m.Params), "up") {
				return id, answer
			}
		case m := <-answer:
			c.t.Fatalf("the run ended at once: %s", m.Result)
		}
	}
}

// works reports it where the bridge runs no code.
func (c *client) works() {
	c.t.Helper()
	if got := c.python("print(6 * 7)", map[string]any{"servers": []string{}}); got.IsError ||
		got.Text != "42\n" {
		c.t.Errorf("the next call: got %+v", got)
	}
}
