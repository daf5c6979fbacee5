package cost_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// recorded are the tools of the public servers that entrypoint/stubs keeps, as they listed them.
func recorded(t testing.TB) map[string][]json.RawMessage {
	t.Helper()
	paths, err := filepath.Glob("../../entrypoint/stubs/testdata/servers/*.json")
	if err != nil || len(paths) != 13 {
		t.Fatalf("%d recorded servers, %v", len(paths), err)
	}
	lists := map[string][]json.RawMessage{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		lists[strings.TrimSuffix(filepath.Base(path), ".json")] = list.Tools
	}
	return lists
}

// many are so many tools.
func many(n int) (list []json.RawMessage) {
	for i := range n {
		list = append(list, json.RawMessage(fmt.Sprintf(`{"name":"tool_%d","description":"Does one thing, number %[1]d.","inputSchema":{"type":"object"}}`, i)))
	}
	return list
}

// noRuns is a Runner for a bridge that runs nothing.
type noRuns struct{}

func (noRuns) Run(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
	return sandbox.Result{}, errors.New("nothing runs here")
}

// listed are servers that only list their tools.
type listed map[string][]json.RawMessage

var errOnlyListed = errors.New("these servers only list their tools")

func (l listed) Tools(_ context.Context, server string) ([]upstream.Tool, error) {
	list := []upstream.Tool{}
	for _, raw := range l[server] {
		var t upstream.Tool
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

func (listed) Call(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errOnlyListed
}

func (listed) List(context.Context, string, upstream.Kind) ([]json.RawMessage, error) {
	return nil, errOnlyListed
}

func (listed) ReadResource(context.Context, string, string) (json.RawMessage, error) {
	return nil, errOnlyListed
}

func (listed) Complete(context.Context, string, map[string]any) (json.RawMessage, error) {
	return nil, errOnlyListed
}

func (listed) GetPrompt(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errOnlyListed
}

// client speaks to a bridge as a host does.
type client struct {
	t            testing.TB
	in           io.Writer
	out          *bufio.Reader
	instructions string
}

// open serves a bridge over some servers until the test ends.
func open(t testing.TB, servers []discovery.Server, lists map[string][]json.RawMessage) *client {
	t.Helper()
	inputs, err := files.NewInputs([]string{"/home/someone/Documents/reports", "/srv/data/exports"}) // with all there can be
	if err != nil {
		t.Fatal(err)
	}
	b, err := bridge.New(bridge.Config{Runner: noRuns{}, Inputs: inputs, Upstreams: listed(lists), Servers: servers, Timeout: 30 * time.Second, MaxTimeout: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() { // ends with its input, below
		served <- b.Serve(context.Background(), inR, outW)
		outW.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	c := &client{t: t, in: inW, out: bufio.NewReader(outR)}
	var hello struct{ Instructions string }
	c.request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`, &hello)
	c.instructions = hello.Instructions
	return c
}

func (c *client) request(method, params string, result any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(line, &answer); err != nil || json.Unmarshal(answer.Result, result) != nil {
		c.t.Fatalf("%s answers %s", method, line)
	}
}

// tools are the definitions that the bridge lists.
func (c *client) tools() []json.RawMessage {
	c.t.Helper()
	var list struct{ Tools []json.RawMessage }
	c.request("tools/list", `{}`, &list)
	return list.Tools
}

// search is the text that search_tools answers.
func (c *client) search(args json.RawMessage) string {
	c.t.Helper()
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	c.request("tools/call", fmt.Sprintf(`{"name":"search_tools","arguments":%s}`, args), &result)
	if result.IsError || len(result.Content) != 1 {
		c.t.Fatalf("%s: %+v", args, result)
	}
	return result.Content[0].Text
}
