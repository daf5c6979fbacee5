package main

import "testing"

// TestNoSuchOffers: what a real server doesn't have, or doesn't offer at all, is an empty list or an error of its own, and a binary
// resource is bytes. What it has is in TestRealServerOffers.
func TestNoSuchOffers(t *testing.T) {
	servers, _ := realServers(t, npm(t))
	c := serve(t, command(t, servers))
	got := c.python(`
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
	want := "True\n[]\n[] []\neverything True\neverything True\nfilesystem True\nfilesystem True\n"
	if got.IsError || got.Text != want {
		t.Errorf("got\n%s\nwant\n%s", got.Text, want)
	}
}
