package docker

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// BenchmarkRun is a whole container through the driver, from create to gone, beside `docker run` of
// the same image with the flags that say the same.
func BenchmarkRun(b *testing.B) {
	d := newDriver(b, Config{})
	f, err := d.Facts(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	g := runtimetest.Target{Driver: d, Image: imageRef, Owner: runtime.Self()}
	b.Run("driver", func(b *testing.B) {
		for b.Loop() {
			exit, err := d.Run(b.Context(), g.Spec("print(1)"),
				runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
			if err != nil || exit.Code != 0 {
				b.Fatalf("%+v, %v", exit, err)
			}
		}
	})
	b.Run("docker-run", func(b *testing.B) {
		args := []string{"run", "--rm", "-i", "--network=none", "--read-only", "--cap-drop=ALL",
			"--security-opt=no-new-privileges",
			"--user=65534:65534", "--log-driver=none", "--cgroupns=private", "--ipc=private", "--shm-size=8m",
			"--tmpfs=/tmp:rw,nosuid,nodev,noexec,size=8m", "--tmpfs=/workspace:rw,nosuid,nodev,noexec,size=16m",
			"--tmpfs=/ipc:rw,nosuid,nodev,noexec,size=4m",
			"--ulimit=nofile=256:256", "--ulimit=core=0:0"}
		if f.Enforces.Memory {
			args = append(args, "--memory=256m", "--memory-swap=256m", "--pids-limit=64")
		}
		args = append(args, imageRef, "python3", "-I", "-B", "-c", "print(1)")
		for b.Loop() {
			if out, err := exec.Command("docker", args...).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	})
}
