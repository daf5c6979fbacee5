package main

import (
	"strings"
	"testing"
)

// TestOffersOfRealServer: code reads, fills in and completes what a server of others offers besides tools.
func TestOffersOfRealServer(t *testing.T) {
	servers, _ := realServers(t, npm(t))
	c := serve(t, command(t, servers))
	got := c.python(`
e = mcp_everything
listed = e.resources.list()
print("static", [r["uri"] for r in listed if r["uri"].endswith("/features.md")])
text = e.resources.read(next(r["uri"] for r in listed if r["uri"].endswith("/features.md")))
print("read", type(text).__mro__[-2].__name__, len(text) > 100, text.uri.endswith("/features.md"))
template = next(t["uriTemplate"] for t in e.resources.templates() if "/text/" in t["uriTemplate"])
print("made", template.replace("{resourceId}", "7"), "7" in e.resources.read(template.replace("{resourceId}", "7")))
blob = e.resources.read(template.replace("/text/", "/blob/").replace("{resourceId}", "8"))
print("blob", isinstance(blob, bytes), len(blob) > 0)
print("proposed", e.resources.complete(template, "resourceId", "12"), e.resources.complete(template, "resourceId", "x"))
print("prompts", [p["name"] for p in e.prompts.list() if p["name"] in ("args-prompt", "completable-prompt")])
print("filled", e.prompts.get("args-prompt", city="Bern", state="BE")["messages"][0]["content"]["text"])
print("completed", e.prompts.complete("completable-prompt", "department", "S"), e.prompts.complete("completable-prompt", "name", "E", department="Sales"))
try:
    e.resources.read("demo://nothing")
except ToolError as error:
    print("no such", "demo://nothing" in str(error))
print("none", mcp_filesystem.prompts.list(), mcp_filesystem.resources.list())
try:
    mcp_filesystem.prompts.get("any")
except ToolError as error:
    print("not offered", error.server)
`, map[string]any{"timeout": 60, "servers": []string{"everything", "filesystem"}})
	for _, want := range []string{
		"static ['demo://resource/static/document/features.md']\n", "read str True True\n", "made demo://resource/dynamic/text/7 True\n", "blob True True\n",
		"proposed ['12'] []\n", "prompts ['args-prompt', 'completable-prompt']\n", "filled What's weather in Bern, BE?\n",
		"completed ['Sales', 'Support'] ['Eve']\n", "no such True\n", "none [] []\n", "not offered filesystem\n",
	} {
		if !strings.Contains(got.Text, want) {
			t.Errorf("there is no %q in\n%s", want, got.Text)
		}
	}
}
