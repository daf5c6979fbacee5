//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// forgetful is a bridge whose podman has had a container made that it hasn't written down yet.
func forgetful(t *testing.T) (c *client, answer <-chan message, service int) {
	t.Helper()
	needEngine(t)
	if os.Getenv("CONTAINER_HOST") != "" {
		t.Skip("the engine's service isn't the bridge's own here")
	}
	name, err := exec.Command("podman", "info", "--format", "{{.Host.OCIRuntime.Path}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	slow, settings := runtimetest.NewSlow(t, strings.TrimSpace(string(name))),
		filepath.Join(t.TempDir(), "containers.conf")
	var usual []byte
	if path := os.Getenv("CONTAINERS_CONF"); path != "" {
		if usual, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	kept := slices.DeleteFunc(strings.Split(string(usual), "\n"),
		func(l string) bool { return strings.HasPrefix(l, "runtime =") || l == "[engine]" })
	conf := fmt.Sprintf("[engine]\nruntime = \"slow\"\n%s\n[engine.runtimes]\n"+
		"slow = [%q]\n", strings.Join(kept, "\n"), slow.Program)
	if err := os.WriteFile(settings, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, nil)
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_STANDBY=0", "CONTAINERS_CONF="+settings)
	c = serve(t, cmd)
	_, answer = c.start("tools/call", map[string]any{"name": "run_python",
		"arguments": map[string]any{"code": "print(1)", "servers": []string{}}})
	within(t, "the container is made", slow.Made)
	if found := monitorsOf([]int{cmd.Process.Pid}); len(found) < 2 {
		t.Fatalf("there is no more than %q, so that this test can't fail", found)
	}
	services := servicesOf(t, cmd.Process.Pid)
	if len(services) == 0 {
		t.Fatal("the bridge has no service of its own")
	}
	service = services[len(services)-1]
	return c, answer, service
}

// TestServiceKilledWhileItStarts: the API service dies when a container is made and not written
// down. No code ran, so the bridge begins the run again with another service; and it ends what
// podman has forgotten.
func TestServiceKilledWhileItStarts(t *testing.T) {
	c, answer, service := forgetful(t)
	pids := []int{c.cmd.Process.Pid}
	if err := sendSignal(service, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := parseAnswer(t, <-answer); got.IsError || got.Text != "1\n" {
		t.Errorf("got %+v", got)
	}
	within(t, "nothing is left", func() bool {
		return len(monitorsOf(pids)) == 0 &&
			len(containersOf(t, pids)) == 0
	})
	if got := c.python("print('again')", map[string]any{"servers": []string{}}); got.IsError ||
		got.Text != "again\n" {
		t.Errorf("the next call: %+v", got)
	}
}

// TestKilledWhileItStarts: the same, and the bridge is killed too. Its watchdog ends what is left.
func TestKilledWhileItStarts(t *testing.T) {
	before := runtimeDirs(t)
	c, _, service := forgetful(t)
	pid := c.cmd.Process.Pid
	c.killed = true
	for _, p := range []int{service, pid} {
		if err := sendSignal(p, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	<-c.ended
	//nolint:errcheck // it was killed; until then it is a zombie, as with a client that never asks
	defer c.cmd.Wait()
	noneLeft(t, []int{pid}, before, "no process has this mark")
}
