package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNoNetwork traces the system calls of commands that a user has not asked to use the network.
// None of them, and no process that they start, opens a connection but to a Unix socket. One that
// is to ask a server at a URL does, which shows that the trace would.
func TestNoNetwork(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	if exec.Command(strace, "-f", "-o", trace, "true").Run() != nil {
		t.Skip("no process may be traced here")
	}
	dir := t.TempDir()
	must(t, os.Symlink(self(t), filepath.Join(dir, "mcp-bridge")))
	ad := newAdoption(t, map[string]string{
		ofCursor: `{"mcpServers": {"shop": {"command": "mcp-bridge", "args": ["demo-server"]}, "web": {"url": ` +
			`"http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer hunter2-v"}}}}`,
		ofCodex: "",
	})
	env := []string{asMain + "=1", "HOME=" + ad.home, "PATH=" + dir + ":" + os.Getenv("PATH"),
		"XDG_RUNTIME_DIR=" + dir}
	for _, command := range []string{
		"version", "help", "completion bash", "install --all --print", "install --all --yes", "tools shop",
		"adopt --print", "adopt --yes", "servers", "servers shop", "stats", "secret set n", "secret list",
		"secret remove n", "servers --check web", "policy test shop.x", "doctor", "adopt --undo --yes",
		"install --undo --yes",
	} {
		args := append([]string{"-f", "-qq", "-e", "trace=socket,connect,sendto", "-o", trace,
			filepath.Join(dir, "mcp-bridge")}, strings.Fields(command)...)
		cmd := exec.CommandContext(t.Context(), strace, args...)
		cmd.Env, cmd.Dir, cmd.Stdin = env, ad.home, strings.NewReader("hunter2\n")
		out, err := cmd.CombinedOutput()
		asks, fails := command == "servers --check web", command == "doctor" || strings.HasPrefix(command, "policy")
		if err != nil && !asks && !fails { // where there is no engine, and no policy
			t.Errorf("%s: %v: %s", command, err, out)
		}
		seen, err := os.ReadFile(trace)
		must(t, err)
		used := regexp.MustCompile(`.*AF_INET.*`).FindAllString(string(seen), 3)
		if (used != nil) != asks {
			t.Errorf("%s: network %q\n%s", command, used, out)
		}
	}
}
