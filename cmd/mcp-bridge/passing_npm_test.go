//go:build unix

package main

import (
	"strings"
	"testing"
)

// TestRealServerOffers: code lists, fills in and completes what a real server has besides tools.
// What one doesn't have, or doesn't offer at all, is an empty list or an error of its own, and a
// binary resource is bytes.
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
print(isinstance(mcp_everything.resources.read("demo://resource/dynamic/blob/8"), bytes))
print(mcp_everything.resources.complete("demo://resource/dynamic/text/{resourceId}", "resourceId", "x"))
print(mcp_filesystem.prompts.list(), mcp_filesystem.resources.list())
for ask in (lambda: mcp_everything.resources.read("demo://nothing"), lambda: mcp_everything.prompts.get("nothing"),
            lambda: mcp_filesystem.prompts.get("any"), lambda: mcp_filesystem.resources.read("file:///etc/passwd")):
    try:
        print("got", ask())
    except ToolError as error:
        print(error.server, bool(str(error)))
`, map[string]any{"timeout": 60, "servers": []string{"everything", "filesystem"}})
	want := "True ['demo://resource/dynamic/text/{resourceId}']\nTrue\nTrue\nWhat's weather in " +
		"Paris?\n['Sales', 'Support'] ['David', 'Eve', 'Frank']\n['3']\n" +
		"True\n[]\n[] []\neverything True\neverything True\nfilesystem True\nfilesystem True\n"
	if got.IsError || got.Text != want {
		t.Errorf("got\n%s\nwant\n%s", got.Text, want)
	}
}

// TestRootsByPolicy: a real server that asks for the client's directories is given them where the
// user has said so, and otherwise has no client that has any.
func TestRootsByPolicy(t *testing.T) {
	needTime(t)
	servers, _ := realServers(t, npm(t))
	const code = `
try:
    print(mcp_everything.get_roots_list())
except AttributeError as e:
    print(type(e).__name__)
`
	for policy, want := range map[string]string{"none": "AttributeError", "client": "file:///home/ada/project"} {
		t.Run(policy, func(t *testing.T) {
			c := serveTo(t, with(command(t, servers), "MCP_BRIDGE_UPSTREAM_ROOTS="+policy),
				map[string]any{"roots": map[string]any{}})
			const roots = `{"roots":[{"uri":"file:///home/ada/project","name":"project"}]}`
			got, asked := c.asked("roots/list", roots, code, map[string]any{"servers": []string{"everything"}})
			if !strings.Contains(got.Text, want) || policy == "none" && len(asked) > 0 {
				t.Errorf("the client was asked %d times; the code got %s", len(asked), got.Text)
			}
		})
	}
}
