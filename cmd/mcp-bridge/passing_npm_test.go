//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestRealServerOffers: code lists, fills in and completes what a real server has besides tools.
func TestRealServerOffers(t *testing.T) {
	servers, _ := realServers(t, npm(t))
	c := serve(t, command(t, servers))
	got := c.python(`
r, p = mcp_everything.resources, mcp_everything.prompts
print(len(r.list()) > 0, [x["uriTemplate"] for x in r.templates() if "text" in x["uriTemplate"]])
print("resource 7" in r.read("demo://resource/dynamic/text/7").lower())
print("args-prompt" in [x["name"] for x in p.list()])
print(p.get("args-prompt", city="Paris")["messages"][0]["content"]["text"])
print(p.complete("completable-prompt", "department", "S"), p.complete("completable-prompt", "name", "", department="Sales"))
print(r.complete("demo://resource/dynamic/text/{resourceId}", "resourceId", "3"))
`, map[string]any{"timeout": 60, "servers": []string{"everything"}})
	want := "True ['demo://resource/dynamic/text/{resourceId}']\nTrue\nTrue\nWhat's weather in Paris?\n['Sales', 'Support'] ['David', 'Eve', 'Frank']\n['3']\n"
	if got.IsError || got.Text != want {
		t.Errorf("got\n%s\nwant\n%s", got.Text, want)
	}
}

// TestRootsByPolicy: a real server that asks for the client's directories is given them where the user has said so, and otherwise has no client
// that has any.
func TestRootsByPolicy(t *testing.T) {
	needTime(t)
	servers, _ := realServers(t, npm(t))
	const code = `
try:
    print(mcp_everything.get_roots_list())
except AttributeError as e:
    print(type(e).__name__)
`
	args := map[string]any{"name": "run_python", "arguments": map[string]any{"code": code, "timeout": 60, "servers": []string{"everything"}}}
	for policy, want := range map[string]string{"none": "AttributeError", "client": "file:///home/ada/project"} {
		t.Run(policy, func(t *testing.T) {
			cmd := command(t, servers)
			cmd.Env = append(cmd.Env, "MCP_BRIDGE_UPSTREAM_ROOTS="+policy)
			c := serveTo(t, cmd, map[string]any{"roots": map[string]any{}})
			_, answer := c.start("tools/call", args)
			for late := time.After(2 * time.Minute); ; {
				select {
				case m := <-c.notes:
					if m.Method == "roots/list" {
						c.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": json.RawMessage(`{"roots":[{"uri":"file:///home/ada/project","name":"project"}]}`)})
						if policy == "none" {
							t.Error("the client was asked")
						}
					}
				case m := <-answer:
					if got := parseAnswer(t, m); !strings.Contains(got.Text, want) {
						t.Errorf("got %s", got.Text)
					}
					return
				case <-late:
					t.Fatal("no answer came")
				}
			}
		})
	}
}
