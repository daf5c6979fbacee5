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

// everythingAt starts the reference server over HTTP at an address and waits until it answers there.
func everythingAt(t *testing.T, bin, mode, address string) (stop func()) {
	t.Helper()
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command(filepath.Join(bin, "mcp-server-everything"), mode)
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PORT=" + port}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
		}
	}
	t.Cleanup(stop)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // between two looks
		resp, err := http.Get("http://" + address + "/none")
		if err == nil {
			_ = resp.Body.Close()
			return stop
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server doesn't answer: %v", err)
		}
	}
}

// freeAddress is one that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestEverythingOverHTTP: the reference server, which others wrote, over both of its HTTP transports; and after a restart of it, which it
// tells in a way of its own (400), the call that met it fails, and the next one works.
func TestEverythingOverHTTP(t *testing.T) {
	bin := npm(t)
	for _, tt := range []struct{ mode, path, typ string }{{"streamableHttp", "/mcp", "http"}, {"sse", "/sse", "sse"}, {"sse", "/sse", "http"}} {
		t.Run(tt.mode+" as "+tt.typ, func(t *testing.T) {
			address := freeAddress(t)
			stop := everythingAt(t, bin, tt.mode, address)
			config := filepath.Join(t.TempDir(), "servers.json")
			entry := `{"mcpServers":{"everything":{"type":"` + tt.typ + `","url":"http://` + address + tt.path + `"}}}`
			if err := os.WriteFile(config, []byte(entry), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := command(t, nil, "serve")
			cmd.Env = append(cmd.Env, "MCP_BRIDGE_CONFIG="+config)
			c := serve(t, cmd)
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
