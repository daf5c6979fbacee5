package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauthtest"
)

const apiKey = "k3y-of-the-remote-server"

// remoteServers are an HTTP server that wants a key, an SSE server, and one that wants a login, as
// a configuration file names them.
func remoteServers(t *testing.T) (as *oauthtest.Server, config string) {
	t.Helper()
	s := mcpserver.NewMCPServer("far", "1")
	s.AddTool(mcp.NewTool("greet", mcp.WithString("name", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("hello " + r.GetString("name", "")), nil
		})
	streamable := mcpserver.NewStreamableHTTPServer(s, mcpserver.WithStateful(true))
	web := func(h http.Handler) string {
		ts := httptest.NewServer(h)
		t.Cleanup(func() {
			ts.CloseClientConnections()
			ts.Close()
		})
		return ts.URL
	}
	keyed := web(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != apiKey {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		streamable.ServeHTTP(w, r)
	}))
	sse := web(mcpserver.NewSSEServer(s))
	as = oauthtest.New(t, streamable)
	b, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"keyed": map[string]any{"type": "http", "url": keyed + "/mcp",
			"headers": map[string]string{"X-Api-Key": apiKey}},
		"old":     map[string]any{"type": "sse", "url": sse + "/sse"},
		"guarded": map[string]any{"type": "http", "url": as.URL + oauthtest.Path},
	}})
	must(t, err)
	config = filepath.Join(t.TempDir(), "servers.json")
	must(t, os.WriteFile(config, b, 0o600))
	return as, config
}

// remoteCommand makes commands of the real program that share a configuration and a state
// directory.
func remoteCommand(t *testing.T, config string) func(args ...string) *exec.Cmd {
	state := t.TempDir()
	return func(args ...string) *exec.Cmd {
		cmd := command(t, nil, args...)
		cmd.Env = append(cmd.Env, "MCP_BRIDGE_CONFIG="+config, "XDG_STATE_HOME="+state, "DBUS_SESSION_BUS_ADDRESS=",
			"DISPLAY=", "WAYLAND_DISPLAY=")
		return cmd
	}
}

// logIn runs mcp-bridge login and is the user: with a browser on another machine, whose address is
// pasted.
func logIn(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	in, err := cmd.StdinPipe()
	must(t, err)
	stderr, err := cmd.StderrPipe()
	must(t, err)
	var out strings.Builder
	cmd.Stdout = &out
	must(t, cmd.Start())
	var said strings.Builder
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		page := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(page, "http://") {
			continue
		}
		browser := &http.Client{CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}}
		resp, err := browser.Get(page)
		must(t, err)
		_ = resp.Body.Close()
		if _, err := io.WriteString(in, resp.Header.Get("Location")+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("login: %v\n%s", err, said.String())
	}
	return out.String()
}

// TestRemoteCommands: tools, login, its status, servers and logout for servers at a URL, without an
// engine, and no secret in what they print.
func TestRemoteCommands(t *testing.T) {
	needTime(t)
	as, config := remoteServers(t)
	program := remoteCommand(t, config)
	run := func(wantCode int, args ...string) string {
		t.Helper()
		cmd := program(args...)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != wantCode {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		for _, secret := range append(as.Secrets(), apiKey) {
			if strings.Contains(string(out), secret) {
				t.Errorf("%v prints a secret:\n%s", args, out)
			}
		}
		return string(out)
	}
	holds(t, run(0, "tools", "keyed"), "mcp_keyed.greet")
	holds(t, run(0, "tools", "old"), "mcp_old.greet")
	holds(t, run(1, "tools", "guarded"), "type: mcp-bridge login guarded")
	holds(t, run(0, "login", "--status"), "guarded  none", "keyed    by its header")
	holds(t, run(0, "login", "--status", "--json", "keyed"), `"byHeader": true`)
	holds(t, run(2, "login"), "--status")
	holds(t, run(2, "login", "missing"), "there is no server")
	holds(t, run(1, "logout", "guarded"), "there is no login")

	as.Set(func(tr *oauthtest.Traps) { tr.TokenEndpoint = "https://evil.example/token" })
	holds(t, run(1, "login", "guarded", "--no-browser"), "log in at "+as.URL, "would go to https://evil.example",
		"run it at a terminal")
	as.Set(func(tr *oauthtest.Traps) { tr.TokenEndpoint = "" })

	holds(t, logIn(t, program("login", "guarded", "--no-browser")), "logged in to guarded")
	holds(t, run(0, "tools", "guarded"), "mcp_guarded.greet")
	holds(t, run(0, "login", "--status"), "guarded  yes, renews itself", "file")
	holds(t, run(0, "login", "--status", "--json", "guarded"), `"loggedIn": true`, `"scope": "tools"`)
	holds(t, run(0, "servers"), "guarded", "keyed", "old")
	holds(t, run(0, "servers", "--json"), `"transport": "http"`, `"transport": "sse"`)
	as.Expire()
	holds(t, run(0, "tools", "guarded"), "mcp_guarded.greet")
	if n := as.Requests("refresh"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
	holds(t, run(0, "logout", "guarded"), "logged out of guarded")
	if as.Requests("revoke") != 1 {
		t.Error("the authorization server was not told")
	}
	holds(t, run(1, "tools", "guarded"), "type: mcp-bridge login guarded")
}

// TestRemoteServers: code in a container calls tools of servers over HTTP and SSE, is told at once
// of one that wants a login, and calls it after that, within one bridge.
func TestRemoteServers(t *testing.T) {
	needEngine(t)
	_, config := remoteServers(t)
	program := remoteCommand(t, config)
	c := serve(t, program("serve"))
	code := `
print(mcp_keyed.greet(name="http"))
print(mcp_old.greet(name="sse"))
try:
    print(mcp_guarded.greet(name="login"))
except Exception as e:
    print("login guarded" in str(e))
`
	began := time.Now()
	got := c.python(code, map[string]any{"timeout": 60})
	if want := "hello http\nhello sse\nTrue\n"; got.IsError || got.Text != want {
		t.Fatalf("got %q, want %q", got.Text, want)
	}
	t.Logf("took %v", time.Since(began))
	logIn(t, program("login", "guarded", "--no-browser"))
	got = c.python(code, map[string]any{"timeout": 60})
	if want := "hello http\nhello sse\nhello login\n"; got.IsError || got.Text != want {
		t.Errorf("got %q, want %q", got.Text, want)
	}
}
