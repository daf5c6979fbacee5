//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// opener is a server that opens a program in a session of its own, as one that opens an editor for
// the user, when it starts.
const opener = pythonServer + `
import subprocess
null = subprocess.DEVNULL
p = subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=null, stdout=null, stderr=null)
with open(sys.argv[1], "w") as f: f.write(str(p.pid))
serve("open")
`

// TestOpenedForTheUser: a program that a server has opened lives on when the client closes, and is
// then no one else's to end; when the bridge is killed it is ended with the server, and the
// watchdog's log names it.
func TestOpenedForTheUser(t *testing.T) {
	open := func(t *testing.T) (c *client, pid int, log string) {
		dir := t.TempDir()
		file := filepath.Join(dir, "pid")
		cmd := command(t, map[string]entry{"opener": {Command: "python3", Args: []string{"-c", opener, file}}})
		cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+dir)
		c = serve(t, cmd)
		c.search(map[string]any{"query": "open"})
		text, err := os.ReadFile(file)
		must(t, err)
		if pid, err = strconv.Atoi(string(text)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		return c, pid, filepath.Join(dir, "mcp-bridge", "watchdog.log")
	}
	sleeps := func(pid int) bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && bytes.HasPrefix(line, []byte("sleep\x00"))
	}
	t.Run("close", func(t *testing.T) {
		c, pid, log := open(t)
		c.close()
		c.killed = true // and waited for
		if out, err := command(t, nil, "doctor", "--reap").CombinedOutput(); !sleeps(pid) {
			t.Errorf("it has ended; doctor --reap: %v, %s", err, out)
		}
		if text, err := os.ReadFile(log); err == nil {
			t.Errorf("the watchdog's log: %s", text)
		}
	})
	t.Run("kill", func(t *testing.T) {
		c, pid, log := open(t)
		c.killed = true
		must(t, c.cmd.Process.Kill())
		_ = c.cmd.Wait()
		<-c.ended
		within(t, "what the server has opened is ended", func() bool { return !sleeps(pid) })
		text, err := os.ReadFile(log)
		if want := fmt.Sprintf("pid=%d program=sleep ", pid); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("the watchdog's log: %v, %s; want %q", err, text, want)
		}
	})
}
