package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// installed returns where `make servers` has installed real servers.
func installed(t *testing.T) string {
	t.Helper()
	needEngine(t)
	dir := os.Getenv("MCP_BRIDGE_TEST_SERVERS")
	if dir == "" {
		t.Skip("MCP_BRIDGE_TEST_SERVERS is not set to what `make servers` installs")
	}
	for _, part := range []string{"npm", "go"} {
		if _, err := os.Stat(filepath.Join(dir, part, "installed")); err != nil {
			t.Fatalf("run `make servers`: %v", err)
		}
	}
	return dir
}

// realServer is one of those, and code that calls a tool of it and prints a line.
type realServer struct {
	name  string
	entry entry
	code  string
	want  string // part of the line
}

// allRealServers are up to twelve, of three languages, none of which knows of the bridge. dir is
// theirs to write to.
func allRealServers(t *testing.T, from, dir, web string) []realServer {
	npm := func(name string, args ...string) entry {
		return entry{Command: filepath.Join(from, "npm", "node_modules", ".bin", name), Args: args,
			Env: map[string]string{"HOME": dir, "MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl")}}
	}
	python := func(environment, name string, args ...string) entry {
		return entry{Command: filepath.Join(from, environment, "bin", name), Args: args,
			Env: map[string]string{"HOME": dir}}
	}
	servers := []realServer{
		{"everything", npm("mcp-server-everything"), `mcp_everything.get_sum(a=40, b=2)`,
			"The sum of 40 and 2 is 42."},
		{"filesystem", npm("mcp-server-filesystem", dir), fmt.Sprintf(`mcp_filesystem.read_text_file(path=%q)`,
			filepath.Join(dir, "note.txt")), "from the file"},
		{"memory", npm("mcp-server-memory"),
			`mcp_memory.create_entities(entities=[{"name": "Ada", "entityType": "person", "observations": ` +
				`["counts"]}])`, "Ada"},
		{"sequential-thinking", npm("mcp-server-sequential-thinking"),
			`mcp_sequential_thinking.sequentialthinking(thought="t", nextThoughtNeeded=False, thoughtNumber=1, ` +
				`totalThoughts=1)`, "'thoughtNumber': 1"},
		{"git-js", npm("git-mcp-server"), fmt.Sprintf(`mcp_git_js.git_status(path=%q)`, dir), "note.txt"},
		// The browser of one, and the library of the other that an install script would build,
		// aren't there: their tools fail, and say so.
		{"playwright", npm("playwright-mcp", "--headless", "--isolated"),
			`mcp_playwright.browser_navigate(url="about:blank")`, "ToolError ### Error"},
		{"sqlite-js", npm("mcp-server-sqlite", filepath.Join(dir, "test.db")), `mcp_sqlite_js.list_tables()`,
			"ToolError Database error"},
		{"gopls", entry{Command: "/bin/sh", Args: []string{"-c", `cd "$0" && exec "$1" mcp`, dir,
			filepath.Join(from, "go", "gopls")},
			Env: map[string]string{"HOME": dir, "GOPROXY": "off", "GOTOOLCHAIN": "local", "PATH": os.Getenv("PATH")}},
			`mcp_gopls.go_workspace()`, "module example.org/tried"},
	}
	for _, environment := range []string{"python", "python-sqlite"} {
		if _, err := os.Stat(filepath.Join(from, environment, "installed")); err != nil {
			t.Log("PyPI gave no servers, or not all, so none of those is called")
			return servers
		}
	}
	return append(servers,
		realServer{"sqlite", python("python-sqlite", "mcp-server-sqlite", "--db-path", filepath.Join(dir, "py.db")),
			`mcp_sqlite.create_table(query="CREATE TABLE t (a INTEGER)")`, "Table created successfully"},
		realServer{"time", python("python", "mcp-server-time"),
			`mcp_time.convert_time(source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")`, "+9.0h"},
		realServer{"git", python("python", "mcp-server-git", "--repository", dir),
			fmt.Sprintf(`mcp_git.git_status(repo_path=%q)`, dir), "note.txt"},
		realServer{"fetch", python("python", "mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"),
			fmt.Sprintf(`mcp_fetch.fetch(url=%q)`, web), "a page of the test"})
}

// TestServersOfOthers: code in a container calls a tool of each of twelve servers that others
// wrote, all in one run.
func TestServersOfOthers(t *testing.T) {
	from := installed(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for name, text := range map[string]string{"note.txt": "from the file",
		"go.mod": "module example.org/tried\n"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v %s", err, out)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "a page of the test")
	}))
	defer page.Close()
	servers := map[string]entry{}
	var code strings.Builder
	code.WriteString("async def ask(name, call):\n    try:\n        print(name, repr(await " +
		"call()).replace('\\n', ' ')[:3000], flush=True)\n    except Exception as e:\n        print(name, " +
		"type(e).__name__, str(e).replace('\\n', ' ')[:300], flush=True)\nimport asyncio\nawait asyncio.gather(\n")
	real := allRealServers(t, from, dir, page.URL)
	for _, s := range real {
		servers[s.name] = s.entry
		fmt.Fprintf(&code, "    ask(%q, lambda: %s),\n", s.name, s.code)
	}
	code.WriteString(")\n")
	cmd := command(t, servers)
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_UPSTREAM_START_TIMEOUT=60")
	names := make([]string, 0, len(real))
	for _, s := range real {
		names = append(names, s.name)
	}
	got := serve(t, cmd).python(code.String(), map[string]any{"timeout": 90, "servers": names})
	for _, s := range real {
		line := ""
		for l := range strings.SplitSeq(got.Text, "\n") {
			if strings.HasPrefix(l, s.name+" ") {
				line = l
			}
		}
		if !strings.Contains(line, s.want) {
			t.Errorf("%s: got %.600q, want %q in it", s.name, line, s.want)
		}
	}
	if got.IsError || t.Failed() {
		t.Logf("error %v: %.4000s", got.IsError, got.Text)
	}
}
