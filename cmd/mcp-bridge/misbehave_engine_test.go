package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestBadServersInARun: each fails as itself, in a run that goes on, is accounted for as a good one, and is followed by others.
func TestBadServersInARun(t *testing.T) {
	needTime(t)
	needEngine(t)
	servers := map[string]entry{
		"good":    shop(t),
		"leaves":  shop(t),
		"garbage": {Command: "/bin/sh", Args: []string{"-c", "yes 'no message' | head -c 1000000; exec sleep 1000"}},
		"dead":    {Command: "/bin/sh", Args: []string{"-c", "echo no license >&2; exit 9"}},
		"flood":   {Command: "/bin/sh", Args: []string{"-c", "exec cat /dev/zero"}},
	}
	cmd := command(t, servers)
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_UPSTREAM_START_TIMEOUT=10")
	c := serve(t, cmd)
	code := `
import asyncio
from mcp import runtime
async def ask(name, tool, **given):
    try:
        print(name, (await runtime.call_tool(name, tool, given)))
    except Exception as e:
        print(name, type(e).__name__, str(e).splitlines()[0])
await asyncio.gather(ask("leaves", "exit", code=7), ask("garbage", "x"), ask("dead", "x"), ask("flood", "x"), ask("good", "echo", text="meanwhile"))
await ask("leaves", "echo", text="again")
`
	for range 2 {
		got := c.python(code, map[string]any{"timeout": 60})
		for _, want := range []string{
			"leaves ToolError server \"leaves\": calling the tool \"exit\": it ended by itself (exit status 7)", "leaves again\n", "good meanwhile\n",
			"garbage ToolError server \"garbage\": starting it: it did not answer within 10s", "dead ToolError server \"dead\": starting it: it ended by itself (exit status 9)",
			"flood ToolError server \"flood\": starting it: it sent a line of more than 33554432 bytes",
		} {
			if !strings.Contains(got.Text, want) {
				t.Errorf("%q is not in\n%s", want, got.Text)
			}
		}
		if got.IsError || strings.Contains(got.Text, "no license") {
			t.Errorf("error %v: %s", got.IsError, got.Text)
		}
	}
}

// TestRealServerAsks: a form that a real server asks for in the course of a run reaches the client, and its answer the server; who hasn't
// said that it can be asked isn't.
func TestRealServerAsks(t *testing.T) {
	needTime(t)
	servers, _ := realServers(t, npm(t))
	const code = `
try:
    print(mcp_everything.trigger_elicitation_request())
except AttributeError as e:
    print(type(e).__name__)
`
	c := serveTo(t, command(t, servers), map[string]any{"elicitation": map[string]any{}})
	_, answer := c.start("tools/call", map[string]any{"name": "run_python", "arguments": map[string]any{"code": code, "timeout": 60, "servers": []string{"everything"}}})
	for asked := false; !asked; {
		select {
		case m := <-c.notes:
			if m.Method != "elicitation/create" {
				continue
			}
			asked = true
			if !strings.Contains(string(m.Params), `The MCP server \"everything\" asks, by way of mcp-bridge: `) {
				t.Errorf("the client is shown %s", m.Params)
			}
			c.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": json.RawMessage(`{"action":"accept","content":{"name":"Ada of the test"}}`)})
		case m := <-answer:
			t.Fatalf("nobody was asked: %s", m.Result)
		case <-time.After(2 * time.Minute):
			t.Fatal("nothing came")
		}
	}
	if got := parseAnswer(t, <-answer); !strings.Contains(got.Text, "Ada of the test") {
		t.Errorf("got %s", got.Text)
	}
	if got := serve(t, command(t, servers)).python(code, map[string]any{"timeout": 60, "servers": []string{"everything"}}); got.Text != "AttributeError\n" {
		t.Errorf("a client that can't be asked: %s", got.Text)
	}
}
