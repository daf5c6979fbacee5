package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// search is what search_tools answers.
func (c *client) search(args map[string]any) string {
	c.t.Helper()
	return parseAnswer(c.t, c.request("tools/call", map[string]any{"name": "search_tools",
		"arguments": args})).Text
}

// TestSearchWithoutStarting: what one process has learned of a server's tools another one finds
// without starting the server, and says how old it is. Nothing of what may be a secret is on disk.
func TestSearchWithoutStarting(t *testing.T) {
	cache := t.TempDir()
	server := shop(t)
	server.Env["SHOP_TOKEN"] = "hunter2-hunter2"
	servers := map[string]entry{"shop": server}
	again := func(servers map[string]entry) *client {
		return serve(t, with(command(t, servers), "XDG_CACHE_HOME="+cache, "HOME="+cache))
	}
	first := again(servers).search(map[string]any{"query": "add numbers"})
	if !strings.Contains(first, "mcp_shop.add(a: int, b: int) -> AddResult\n") ||
		strings.Contains(first, "cached") {
		t.Errorf("the first process: %s", first)
	}
	second := again(servers)
	if got := second.search(map[string]any{"query": "add numbers"}); !strings.Contains(got,
		"mcp_shop.add(a: int, b: int) -> AddResult\n") ||
		!strings.Contains(got, "[cached, the server not asked since: shop (") || !strings.Contains(got, " old)]") {
		t.Errorf("the second process: %s", got)
	}
	files := 0
	err := filepath.WalkDir(cache, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text)+path, "hunter2") {
			t.Errorf("%s holds a secret", path)
		}
		if strings.HasSuffix(path, ".json") {
			files++
		}
		return err
	})
	if err != nil || files != 1 {
		t.Errorf("%d files, %v", files, err)
	}
	server.Env["SHOP_TOKEN"] = "another"
	if got := again(servers).search(map[string]any{"query": "add numbers"}); strings.Contains(got, "cached") {
		t.Errorf("a server with another environment: %s", got)
	}
}

// TestSearchNamesWhatDoesNotStart: the others are searched all the same.
func TestSearchNamesWhatDoesNotStart(t *testing.T) {
	c := serve(t, command(t, map[string]entry{"shop": shop(t), "broken": {Command: "false"}}))
	if got := c.search(map[string]any{"query": "echo", "detail": "full", "limit": 1}); !strings.Contains(got,
		"def echo(text: str)") || !strings.Contains(got, "[not searched: broken: ") {
		t.Errorf("got %s", got)
	}
}

// TestSearchFromCode: what code finds without a server being started it can then call, and what is
// gone since is told to be gone.
func TestSearchFromCode(t *testing.T) {
	needEngine(t)
	cache := t.TempDir()
	servers := map[string]entry{"shop": shop(t)}
	run := func(code string) string {
		cmd := command(t, servers)
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+cache)
		return serve(t, cmd).python(code, map[string]any{"timeout": 60}).Text
	}
	if got := run("mcp_shop.add(a=1, b=2)"); !strings.Contains(got, "3") {
		t.Fatalf("got %s", got)
	}
	files, err := filepath.Glob(filepath.Join(cache, "mcp-bridge", "tools", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("kept: %v, %v", files, err)
	}
	key := strings.TrimSuffix(filepath.Base(files[0]), ".json")
	store := catalog.OpenStore(filepath.Dir(files[0]))
	list, _ := store.Load(key)
	list.Tools = append(list.Tools, upstream.Tool{Name: "cancel-order", Description: "Cancels an order."})
	list.AsOf = list.AsOf.Add(-100 * time.Hour)
	must(t, store.Save(key, list))
	got := run(`
found = runtime.search_tool_docs("cancel order")[0]
print(found["toolAlias"], found["cached"])
try:
    mcp_shop.cancel_order()
except AttributeError as e:
    print(e)
print(mcp_shop.add(a=2, b=3)["sum"])`)
	holds(t, got, "cancel_order True\n",
		"mcp_shop has no tool 'cancel_order' any more: what was known of its tools was out of date; ", "\n5\n")
}
