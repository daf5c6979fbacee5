package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// npm returns where `make npm` has installed real servers and a real client.
func npm(t *testing.T) string {
	t.Helper()
	needEngine(t)
	dir := os.Getenv("MCP_BRIDGE_TEST_NPM")
	if dir == "" {
		t.Skip("MCP_BRIDGE_TEST_NPM is not set to what `make npm` installs")
	}
	if _, err := os.Stat(filepath.Join(dir, "installed")); err != nil {
		t.Fatalf("run `make npm`: %v", err)
	}
	return filepath.Join(dir, "node_modules", ".bin")
}

// realServers are everything and filesystem, the latter of a new directory.
func realServers(t *testing.T, bin string) (servers map[string]entry, files string) {
	files = t.TempDir()
	env := map[string]string{"PATH": bin + ":" + os.Getenv("PATH")}
	return map[string]entry{
		"shop":       shop(t),
		"everything": {Command: filepath.Join(bin, "mcp-server-everything"), Env: env},
		"filesystem": {Command: filepath.Join(bin, "mcp-server-filesystem"), Args: []string{files}, Env: env},
	}, files
}

// TestRealServers: code calls tools of two servers from npm and of the built-in one.
func TestRealServers(t *testing.T) {
	servers, files := realServers(t, npm(t))
	must(t, os.WriteFile(filepath.Join(files, "note.txt"), []byte("from the file"), 0o600))
	c := serve(t, command(t, servers))
	code := fmt.Sprintf(`
import asyncio
note = await mcp_filesystem.read_text_file(path=%q)
echo, total, order = await asyncio.gather(
    mcp_everything.echo(message=note["content"]), mcp_everything.get_sum(a=40, b=2), mcp_shop.get_order(id="A-1001"))
print(echo)
print(total)
print(order["id"])
print(sorted(mcp_servers))
try:
    await mcp_filesystem.read_text_file(path="/etc/passwd")
except Exception as e:
    print(type(e).__name__)
`, filepath.Join(files, "note.txt"))
	got := c.python(code, map[string]any{"timeout": 60, "servers": []string{"everything", "filesystem", "shop"}})
	want := "Echo: from the file\nThe sum of 40 and 2 is 42.\nA-1001\n['everything', 'filesystem', " +
		"'shop']\nToolError\n"
	if got.IsError || got.Text != want {
		t.Errorf("got %q, want %q", got.Text, want)
	}
}

// TestInspector: MCP Inspector's command line, a client that others wrote, lists the tool and calls
// it.
func TestInspector(t *testing.T) {
	bin := npm(t)
	servers, _ := realServers(t, bin)
	config := configure(t, servers)
	inspect := func(args ...string) string {
		t.Helper()
		argv := append([]string{filepath.Join(bin, "mcp-inspector"), "--cli", "-e", asMain + "=1", "-e",
			"MCP_BRIDGE_CONFIG=" + config,
			"-e", "XDG_RUNTIME_DIR=" + os.Getenv("XDG_RUNTIME_DIR"), "-e", "XDG_STATE_HOME=" + t.TempDir(), self(t)},
			args...)
		cmd := exec.Command(filepath.Join(bin, "node"), argv...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("mcp-inspector %v: %v\n%s%s", args, err, out, stderr.String())
		}
		return string(out)
	}
	var tools struct{ Tools []struct{ Name string } }
	if out := inspect("--method", "tools/list"); json.Unmarshal([]byte(out), &tools) != nil ||
		len(tools.Tools) != 3 || tools.Tools[1].Name != "run_python" || tools.Tools[2].Name != "search_tools" {
		t.Errorf("tools/list: %s", out)
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	out := inspect("--method", "tools/call", "--tool-name", "run_python",
		"--tool-arg", "code=print(mcp_everything.echo(message='inspected'))", "--tool-arg", "timeout=60")
	if json.Unmarshal([]byte(out), &result) != nil || result.IsError || len(result.Content) != 1 ||
		result.Content[0].Text != "Echo: inspected\n" {
		t.Errorf("tools/call: %s", out)
	}
}
