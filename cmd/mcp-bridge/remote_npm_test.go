//go:build unix

package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// everythingAt starts the reference server over HTTP at an address and waits until it answers
// there.
func everythingAt(t *testing.T, bin, mode, address string) (stop func()) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "mcp-server-everything"), mode)
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PORT=" + portOf(address)}
	return programAt(t, cmd, address)
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// programAt starts a program that serves HTTP at an address, and waits until it answers there.
func programAt(t *testing.T, cmd *exec.Cmd, address string) (stop func()) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, cmd.Start())
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
		}
	}
	t.Cleanup(stop)
	withinTime(t, time.Minute, "the server answers", func() bool {
		resp, err := http.Get("http://" + address + "/none")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	})
	return stop
}

// freeAddress is one that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// TestEverythingOverHTTP: the reference server, which others wrote, over both of its HTTP
// transports; and after a restart of it, which it tells in a way of its own (400), the call that
// met it fails, and the next one works.
func TestEverythingOverHTTP(t *testing.T) {
	needTime(t)
	bin := npm(t)
	for _, tt := range []struct{ mode, path, typ string }{{"streamableHttp", "/mcp", "http"},
		{"sse", "/sse", "sse"}, {"sse", "/sse", "http"}} {
		t.Run(tt.mode+" as "+tt.typ, func(t *testing.T) {
			address := freeAddress(t)
			stop := everythingAt(t, bin, tt.mode, address)
			c := serve(t, command(t, map[string]entry{"everything": {Type: tt.typ, URL: "http://" + address +
				tt.path}}))
			got := c.python(`print(mcp_everything.get_sum(a=40, b=2))
print(len(mcp_everything.get_tiny_image()))`, map[string]any{"timeout": 60})
			if got.IsError || !strings.HasPrefix(got.Text, "The sum of 40 and 2 is 42.\n") {
				t.Fatalf("got %q", got.Text)
			}
			stop()
			everythingAt(t, bin, tt.mode, address)
			got = c.python(`
for _ in range(100):
    try:
        print(mcp_everything.echo(message="again"))
        break
    except Exception as e:
        error = str(e)
else:
    print("never:", error)
`, map[string]any{"timeout": 60})
			if got.IsError || got.Text != "Echo: again\n" {
				t.Errorf("got %q", got.Text)
			}
		})
	}
}

// TestLoginToServerOfOthers: the TypeScript SDK's authorization server, and a server behind it that
// takes only tokens which were given for it: found by their metadata, registered with, agreed to
// with PKCE, and used.
func TestLoginToServerOfOthers(t *testing.T) {
	needTime(t)
	bin := npm(t)
	server, authority := freeAddress(t), freeAddress(t)
	example := exec.Command(filepath.Join(bin, "node"),
		filepath.Join(filepath.Dir(bin),
			"@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js"), "--oauth", "--oauth-strict")
	example.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "MCP_PORT=" +
		portOf(server), "MCP_AUTH_PORT=" + portOf(authority)}
	programAt(t, example, server)
	config := configure(t, map[string]entry{"guarded": {Type: "http", URL: "http://localhost:" + portOf(server) +
		"/mcp"}})
	program := remoteCommand(t, config)
	for _, step := range []struct {
		args []string
		ok   bool
		want string
	}{
		{[]string{"tools", "guarded"}, false, "type: mcp-bridge login guarded"},
		{[]string{"login", "guarded", "--no-browser"}, true, "logged in to guarded"},
		{[]string{"login", "--status"}, true, "mcp:tools"},
		{[]string{"tools", "guarded"}, true, "mcp_guarded.greet"},
		{[]string{"logout", "guarded"}, true, "logged out of guarded"},
		{[]string{"tools", "guarded"}, false, "type: mcp-bridge login guarded"},
	} {
		cmd := program(step.args...)
		if step.args[0] == "login" && len(step.args) == 3 {
			if out := logIn(t, cmd); !strings.Contains(out, step.want) {
				t.Fatalf("%v: %s", step.args, out)
			}
			continue
		}
		if out, err := cmd.CombinedOutput(); (err == nil) != step.ok || !strings.Contains(string(out), step.want) {
			t.Fatalf("%v: %v\n%s\nwant %q", step.args, err, out, step.want)
		}
	}
}
