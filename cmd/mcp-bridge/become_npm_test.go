package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// prey is the home of a user whose hosts trust the project, with a filesystem server over all of
// it.
type prey struct {
	t          *testing.T
	home, proj string
	vars       []string
}

func newPrey(t *testing.T) *prey {
	bin := npm(t)
	home, err := os.MkdirTemp("", "prey") //nolint:usetesting // podman may write into it until after the test
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	p := &prey{t: t, home: home, proj: filepath.Join(home, "proj")}
	for file, text := range map[string]string{
		".claude.json": `{"projects": {"PROJ": {"hasTrustDialogAccepted": true, ` +
			`"enabledMcpjsonServers": ["named"]}}}`,
		".codex/config.toml":          "[projects.\"PROJ\"]\ntrust_level = \"trusted\"\n",
		".gemini/trustedFolders.json": `{"PROJ": "TRUST_FOLDER"}`,
		"proj/.git/HEAD":              "",
		"proj/examples/mcp.json":      p.definition("moved"),
		".vscode-server/x":            "",
	} {
		p.write(file, text)
	}
	files, err := json.Marshal(
		map[string]any{"mcpServers": map[string]entry{"files": {Command: filepath.Join(bin,
			"mcp-server-filesystem"), Args: []string{home},
			Env: map[string]string{"PATH": bin + ":" + os.Getenv("PATH")}}}})
	must(t, err)
	p.write("mine.json", string(files))
	data := os.Getenv("XDG_DATA_HOME")
	if data == "" {
		data = filepath.Join(os.Getenv("HOME"), ".local", "share")
	}
	p.vars = append(inHome(home), "MCP_BRIDGE_CONFIG="+filepath.Join(home, "mine.json"), "XDG_STATE_HOME=",
		"GEMINI_CLI_HOME=", "COPILOT_HOME=",
		"XDG_DATA_HOME="+data, "XDG_CACHE_HOME="+t.TempDir()) // the engine's images are where they are
	return p
}

func (p *prey) write(file, text string) {
	p.t.Helper()
	path := filepath.Join(p.home, file)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.ReplaceAll(text, "PROJ", p.proj)), 0o600)
	}
	must(p.t, err)
}

// definition is a file of one server, which leaves a mark when it is started.
func (p *prey) definition(name string) string {
	return fmt.Sprintf(`{"mcpServers": {%q: {"command": "/bin/sh", "args": ["-c", "touch %s/RAN-%s"]}}}`, name,
		p.home, name)
}

// places are the files that code writes, and what into each. The names of the servers are those
// that it then touches.
func (p *prey) places() (texts map[string]string, names []string) {
	toml := func(name string) string {
		return fmt.Sprintf("[mcp_servers.%s]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"touch %s/RAN-%s\"]\n", name,
			p.home, name)
	}
	texts = map[string]string{
		"proj/.codex/config.toml":           toml("codex"),
		"proj/.gemini/settings.json":        p.definition("gemini"),
		"proj/.mcp.json":                    p.definition("named"),
		".config/mcp/servers/own.json":      p.definition("own"),
		".cursor/mcp.json":                  p.definition("cursor"),
		".codeium/windsurf/mcp_config.json": p.definition("windsurf"),
		".copilot/mcp-config.json":          p.definition("copilot"),
		".config/Code/User/mcp.json": strings.Replace(p.definition("vscode"), "mcpServers", "servers",
			1),
		".vscode-server/data/User/mcp.json": strings.Replace(p.definition("remote"), "mcpServers", "servers",
			1),
		".config/zed/settings.json": strings.Replace(p.definition("zed"), "mcpServers",
			"context_servers", 1),
		".kiro/settings/mcp.json": p.definition("kiro"),
		".claude/settings.json":   `{"enableAllProjectMcpServers": true}`,
		"proj/.claude/settings.local.json": `{"enableAllProjectMcpServers": true, "enabledMcpjsonServers": ` +
			`["named"]}`,
		".codex/config.toml": toml("codexuser") + "[projects.\"" + p.proj +
			"\"]\ntrust_level = \"trusted\"\n",
		".local/state/mcp-bridge/approved.json": `{"known": {}, "served": []}`,
	}
	texts[".claude.json"] = fmt.Sprintf(`{"projects": {%q: {"hasTrustDialogAccepted": true, `+
		`"enabledMcpjsonServers": ["named"], %s}}, "x": 1, %s`, p.proj,
		strings.Trim(p.definition("local"), "{}")+"}}", strings.TrimPrefix(p.definition("claude"), "{"))
	mine, err := os.ReadFile(filepath.Join(p.home, "mine.json"))
	must(p.t, err)
	listed := strings.TrimSuffix(strings.TrimPrefix(p.definition("listed"), `{"mcpServers": {`), "}}")
	texts["mine.json"] = strings.Replace(string(mine), `{"mcpServers":{`, `{"mcpServers":{`+listed+",", 1)
	return texts, []string{"codex", "gemini", "named", "own", "cursor", "windsurf", "copilot", "vscode",
		"remote", "zed", "kiro", "codexuser", "local", "claude", "listed", "moved"}
}

// bridge is one over the home, in the project.
func (p *prey) bridge() *client {
	cmd := command(p.t, nil)
	cmd.Dir, cmd.Env = p.proj, append(cmd.Env, p.vars...)
	return serve(p.t, cmd)
}

// touch has code touch each server by each means, and returns what it says.
func (p *prey) touch(c *client, names []string) string {
	p.t.Helper()
	list, err := json.Marshal(names)
	must(p.t, err)
	got := c.python(fmt.Sprintf(`
for name in %s:
    for touch in (lambda: mcp_servers[name].x(), lambda: runtime.call_tool(name, "x", {}), lambda: runtime.list_tools_sync(name)):
        try:
            touch()
            print(name, "ANSWERED")
        except Exception as e:
            print(name, type(e).__name__, e)
print(runtime.search_tool_docs("x"))
`, list), map[string]any{"timeout": 60})
	return got.Text
}

// ran are the servers that were started.
func (p *prey) ran() []string {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.home, "RAN-*"))
	must(p.t, err)
	return found
}

// TestCodeBecomesNoServer: code with the filesystem server over the whole home directory writes a
// definition into every place there is, approves it where hosts keep approvals, and forges our own
// record. Nothing of it is started: not by this bridge, nor by one beside it, nor by the next ones,
// after a good end and after a kill.
func TestCodeBecomesNoServer(t *testing.T) {
	p := newPrey(t)
	texts, names := p.places()
	first := p.bridge()
	write, err := json.Marshal(texts)
	must(t, err)
	got := first.python(fmt.Sprintf(`
import json, os
for path, text in json.loads(%q).items():
    path = %q + "/" + path
    so_far = ""
    for part in os.path.dirname(path).split("/")[1:]:
        so_far += "/" + part
        if so_far.startswith(%q):
            await mcp_files.create_directory(path=so_far)
    await mcp_files.write_file(path=path, content=text)
await mcp_files.create_directory(path=%q)
await mcp_files.move_file(source=%q, destination=%q)
print("written")
`, write, p.home, p.home+"/", p.home+"/.junie/mcp", p.proj+"/examples/mcp.json", p.home+"/.junie/mcp/mcp.json"), map[string]any{"timeout": 60})
	if got.Text != "written\n" {
		t.Fatalf("code could not write: %s", got.Text)
	}
	// What the bridge has noticed is in its listing of servers, once it has noticed it.
	withinTime(t, time.Minute, "its listing has what was written", func() bool {
		seen := first.python("print([s['name'] for s in runtime.discovered_servers(detailed=True) "+
			"if 'New since' in s.get('description', '')])", nil).Text
		return strings.Contains(seen, "'moved'") && strings.Contains(seen, "'listed'") &&
			strings.Contains(seen, "'own'")
	})
	check := func(when string, c *client) {
		t.Helper()
		said := p.touch(c, names)
		if strings.Contains(said, "ANSWERED") || !strings.Contains(said, "(mcp-bridge servers approve,") {
			t.Errorf("%s: %s", when, said)
		}
		if ran := p.ran(); len(ran) > 0 {
			t.Fatalf("%s these were started: %q", when, ran)
		}
	}
	check("in the same session", first)
	second := p.bridge()
	check("by a bridge beside it", second)
	second.close()
	second.killed = true
	first.close()
	first.killed = true
	third := p.bridge()
	check("after a good end", third)
	if got := third.python(fmt.Sprintf(`await mcp_files.write_file(path=%q, content='{"known": {}, "served": `+
		`[]}')`, p.home+"/.local/state/mcp-bridge/approved.json"), nil); got.IsError {
		t.Fatal(got.Text)
	}
	third.killed = true
	must(t, third.cmd.Process.Signal(syscall.SIGKILL))
	_ = third.cmd.Wait()
	withinTime(t, time.Minute, "its watchdog has written the record", func() bool {
		text, err := os.ReadFile(filepath.Join(p.home, ".local/state/mcp-bridge/approved.json"))
		return err == nil && strings.Contains(string(text), `"killed":true`)
	})
	fourth := p.bridge()
	check("after a kill", fourth)

	// The same is started once the user says so: the test would see it.
	cmd := command(t, nil, "servers", "approve", "cursor", "--yes")
	cmd.Dir, cmd.Env = p.proj, append(cmd.Env, p.vars...)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "RAN-cursor") {
		t.Fatalf("%v: %s", err, out)
	}
	p.touch(fourth, []string{"cursor"})
	if ran := p.ran(); !slices.Equal(ran, []string{filepath.Join(p.home, "RAN-cursor")}) {
		t.Errorf("after a yes these were started: %q", ran)
	}
}
