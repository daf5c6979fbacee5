package docker

import (
	"bufio"
	"context"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// victimVar is set for a process that runs a container and is killed: the instance that its
// container belongs to.
const victimVar = "MCP_BRIDGE_TEST_VICTIM"

// victim runs a container that says "up" and then waits for its input to end.
func victim(instance string) int {
	d := New(Config{RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"), AllowRootful: true})
	defer d.Close()
	owner := runtime.Self()
	owner.Instance = instance
	g := runtimetest.Target{Driver: d, Image: imageRef, Owner: owner}
	never, w := io.Pipe()
	defer w.Close()
	spec := g.Spec("import sys; print('up', flush=True); sys.stdin.read()")
	if _, err := d.Run(context.Background(), spec,
		runtime.Stdio{Stdin: never, Stdout: os.Stdout, Stderr: os.Stderr}); err != nil {
		return 1
	}
	return 0
}

// TestKilled: whenever the bridge is killed, its container is gone soon after. Only one that had
// not been started yet stays, for the next bridge to reap.
func TestKilled(t *testing.T) {
	d := newDriver(t, Config{})
	for i := range 8 {
		owner := runtime.Owner{Instance: rand.Text()}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimVar+"="+owner.Instance)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		if i > 0 { // at any moment; the first when it is up
			kill.Reset(time.Duration(i) * 20 * time.Millisecond)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		if i == 0 && line != "up\n" {
			t.Errorf("it said %q", line)
		}
		cmd.Process.Kill()
		cmd.Wait()
		kill.Stop()
		gone := time.Now().Add(20 * time.Second)
		for count(t, d, owner) > 0 {
			if i > 0 {
				if _, err := runtime.Reap(t.Context(), d, runtime.Self()); err != nil {
					t.Fatal(err)
				}
			}
			if time.Now().After(gone) {
				t.Fatalf("killed at moment %d: its container is still there", i)
			}
		}
	}
}
