package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// locker stands in for uv, whose index is the world's: it takes the lock that a test has made.
const locker = "#!/bin/sh\nwhile [ $# -gt 0 ]; do\n[ \"$1\" = --output-file ] " +
	"&& cp '%s' \"$2\"\nshift\ndone\n" +
	"cat >/dev/null\n"

// TestTemplateOnEngine: a template is made, a sandbox from it, which is changed, saved and woken:
// it has its packages, files and what it was changed to.
func TestTemplateOnEngine(t *testing.T) {
	needEngine(t)
	s := newWheelhouse(t, map[string]string{"big/__init__.py": "made = 1\n"})
	dir, name := t.TempDir(), s.name+"x"
	must(t, os.WriteFile(filepath.Join(dir, "uv"), fmt.Appendf(nil, locker, s.lock), 0o700))
	policy := filepath.Join(dir, "policy.toml")
	must(t, os.WriteFile(policy, []byte("[packages]\non_demand = true\n"), 0o600))
	t.Cleanup(func() { _ = s.command("env", "remove", name).Run() })
	c := serve(
		t,
		with(
			s.command(),
			"PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"),
			"MCP_BRIDGE_TOOLS=all",
			"MCP_BRIDGE_POLICY="+policy,
			"MCP_BRIDGE_HIBERNATE="+filepath.Join(dir, "saved"),
			"MCP_BRIDGE_SANDBOX_IDLE=3",
		),
	)
	made := c.tool("sandbox_template_create", map[string]any{"name": name, "packages": []string{"big"}})
	if text := fmt.Sprint(made); !strings.Contains(text, "status:ready") || !strings.Contains(text, "big==1.0") {
		t.Fatal(text)
	}
	id, _ := c.tool("sandbox_create", map[string]any{"from_template": name})["id"].(string)
	in := map[string]any{"sandbox": id, "timeout": 60, "servers": []string{}}
	begun := c.python("import big; print(open('f', 'w').write('kept'), big.made)", in)
	if !strings.HasPrefix(begun.Text, "4 1\n") {
		t.Fatal(begun.Text)
	}
	of := func(more map[string]any) map[string]any {
		more["sandbox_id"] = id
		return more
	}
	c.tool("sandbox_update", of(map[string]any{"metadata": map[string]string{"a": "b"}}))
	within(t, "it is saved", func() bool {
		return c.tool("sandbox_info", of(map[string]any{}))["status"] == "hibernated"
	})
	got := c.python("import big; print(open('f').read(), big.made)", in)
	if !strings.HasPrefix(got.Text, "kept 1\n") || !strings.Contains(got.Text, "files are back") {
		t.Errorf("woken: %s", got.Text)
	}
	info := fmt.Sprint(c.tool("sandbox_info", of(map[string]any{})))
	if !strings.Contains(info, "metadata:map[a:b]") || !strings.Contains(info, name) {
		t.Errorf("woken it is %s", info)
	}
}
