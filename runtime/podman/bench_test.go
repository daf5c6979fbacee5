//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// BenchmarkRun is a whole container through the driver, from create to gone, beside `podman run` of
// the same image with the flags that say the same.
func BenchmarkRun(b *testing.B) {
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "podman" {
		b.Skip("MCP_BRIDGE_TEST_RUNTIME is not podman: no engine to measure")
	}
	d := New(Config{RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"), Endpoint: os.Getenv("CONTAINER_HOST")})
	defer d.Close()
	g := runtimetest.Target{Driver: d, Image: image, Owner: runtime.Self()}
	b.Run("driver", func(b *testing.B) {
		for b.Loop() {
			exit, err := d.Run(b.Context(), g.Spec("print(1)"),
				runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
			if err != nil || exit.Code != 0 {
				b.Fatalf("%+v, %v", exit, err)
			}
		}
	})
	b.Run("podman-run", func(b *testing.B) {
		for b.Loop() {
			out, err := exec.Command("podman", "run", "--rm", "-i", "--network=none", "--read-only",
				"--read-only-tmpfs=false", "--cap-drop=ALL",
				"--security-opt=no-new-privileges", "--user=65534:65534", "--log-driver=none", "--cgroupns=private",
				"--tmpfs=/tmp:rw,nosuid,nodev,noexec,size=8m", "--tmpfs=/workspace:rw,nosuid,nodev,noexec,size=16m",
				"--ulimit=nofile=256:256",
				image, "python3", "-I", "-B", "-c", "print(1)").CombinedOutput()
			if err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	})
}
