package main

import (
	"strings"
	"testing"
)

// TestBadServersInARun: each fails as itself, in a run that goes on, is accounted for as a good
// one, and is followed by others.
func TestBadServersInARun(t *testing.T) {
	needTime(t)
	needEngine(t)
	servers := map[string]entry{
		"good":   shop(t),
		"leaves": shop(t),
		"garbage": {Command: "/bin/sh",
			Args: []string{"-c", "yes 'no message' | head -c 1000000; exec sleep 1000"}},
		"dead":  {Command: "/bin/sh", Args: []string{"-c", "echo no license >&2; exit 9"}},
		"flood": {Command: "/bin/sh", Args: []string{"-c", "exec cat /dev/zero"}},
	}
	c := serve(t, with(command(t, servers), "MCP_BRIDGE_UPSTREAM_START_TIMEOUT=10"))
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
		holds(t, got.Text,
			"leaves ToolError server \"leaves\": calling the tool \"exit\": it ended by itself (exit status 7)",
			"leaves again\n", "good meanwhile\n",
			"garbage ToolError server \"garbage\": starting it: it did not answer within 10s",
			"dead ToolError server \"dead\": starting it: it ended by itself (exit status 9)",
			"flood ToolError server \"flood\": starting it: it sent a line of more than 16777216 bytes")
		if got.IsError || strings.Contains(got.Text, "no license") {
			t.Errorf("error %v: %s", got.IsError, got.Text)
		}
	}
}

// TestRealServerAsks: a form that a real server asks for in the course of a run reaches the client,
// and its answer the server; who hasn't said that it can be asked isn't.
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
	only := map[string]any{"servers": []string{"everything"}}
	got, asked := c.asked("elicitation/create", `{"action":"accept","content":{"name":"Ada of the test"}}`, code,
		only)
	if len(asked) != 1 {
		t.Fatalf("asked %q, and the code got %s", asked, got.Text)
	}
	holds(t, asked[0], `The MCP server \"everything\" asks, by way of mcp-bridge: `)
	holds(t, got.Text, "Ada of the test")
	if got := serve(t, command(t, servers)).python(code, map[string]any{"timeout": 60,
		"servers": []string{"everything"}}); got.Text != "AttributeError\n" {
		t.Errorf("a client that can't be asked: %s", got.Text)
	}
}
