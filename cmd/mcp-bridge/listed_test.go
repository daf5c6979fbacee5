package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestListedFileThatIsNotThere: what MCP_BRIDGE_CONFIG names and can't be read is told where its user looks: on stderr of serve and of
// the commands that use servers, by servers and by doctor; and to a model that asks for what may be in it.
func TestListedFileThatIsNotThere(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone.json")
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`{"mcpServers": {"s": {"env": {"TOKEN": "hunter2`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"MCP_BRIDGE_CONFIG=" + gone + string(os.PathListSeparator) + broken, "HOME=" + t.TempDir(), "XDG_CONFIG_HOME="}
	wanted := []string{gone + " (mcp-bridge, MCP_BRIDGE_CONFIG): it does not exist", broken + " (mcp-bridge, MCP_BRIDGE_CONFIG): it is not valid JSON"}
	check := func(where, text string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if n := strings.Count(text, w); n != 1 {
				t.Errorf("%s says %q %d times:\n%s", where, w, n, text)
			}
		}
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s tells a secret", where)
		}
	}
	for _, args := range [][]string{{"tools"}, {"servers"}, {"doctor"}} {
		cmd := command(t, nil, args...)
		cmd.Env = append(cmd.Env, env...)
		out, err := cmd.CombinedOutput()
		if err != nil && args[0] != "doctor" { // which may miss an engine here
			t.Errorf("%s: %v", args, err)
		}
		text := string(out)
		if args[0] == "servers" { // which has the reason first
			check(args[0], text, "broken: it does not exist\n    "+gone+" (mcp-bridge, MCP_BRIDGE_CONFIG)\n", "broken: it is not valid JSON", broken)
			continue
		}
		check(args[0], text, wanted...)
	}
	cmd := command(t, nil)
	cmd.Env = append(cmd.Env, env...)
	log := logFile(t)
	cmd.Stderr = log
	c := serve(t, cmd)
	said := parseAnswer(t, c.request("tools/call", map[string]any{"name": "search_tools", "arguments": map[string]any{"query": "x", "server": "mine"}})).Text
	check("the answer about an unknown server", said, "what "+gone+" defines isn't known: it does not exist")
	data, err := os.ReadFile(log.Name())
	if err != nil {
		t.Fatal(err)
	}
	check("serve", string(data), wanted...)
	if !strings.Contains(string(data), "level=WARN") {
		t.Errorf("it is no warning:\n%s", data)
	}
}
