package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// baseImage is what the bridge runs code in, by `make image`; dataImage has the environment data.
const (
	baseImage = "localhost/mcp-bridge/python:latest"
	dataImage = "localhost/mcp-bridge/env-data:latest"
)

// podmanRun returns a taker that runs printOne in an image.
func podmanRun(image string) taker {
	return func(ctx context.Context) (time.Duration, error) {
		took, out, err := timed(container(ctx, image, printOne))
		if err == nil && out != "1\n" {
			err = fmt.Errorf("podman run printed %q", out)
		}
		return took, err
	}
}

// container returns a command that runs code in an image, with flags that say what
// runtime/podman/spec.go says by the API.
func container(ctx context.Context, image, code string) *exec.Cmd {
	const flags = "run --rm -i --pull=never --network=none --read-only --read-only-tmpfs=false " +
		"--user=65534:65534 --cap-drop=all --security-opt=no-new-privileges " +
		"--env=PATH=/usr/local/bin:/usr/bin:/bin --no-hosts --ipc=none --uts=private --pid=private " +
		"--cgroupns=private --systemd=false --log-driver=none --image-volume=ignore --no-healthcheck " +
		"--http-proxy=false --passwd=false --timeout=600 --ulimit=nofile=1024:1024 --ulimit=core=0:0"
	argv := strings.Fields(flags)
	for _, dir := range []string{"/workspace", "/tmp", "/ipc", "/dev/shm"} {
		argv = append(argv, "--tmpfs="+dir+":rw,nosuid,nodev,noexec,notmpcopyup,size=64m,mode=1777")
	}
	argv = append(argv, image, "python3", "-I", "-B", "-c", code)
	return exec.CommandContext(ctx, "podman", argv...) //nolint:gosec // a baseline
}

// timed runs a program to its end, and returns how long that took and what it printed.
func timed(cmd *exec.Cmd) (time.Duration, string, error) {
	said := &tail{}
	cmd.Stderr = said
	begin := time.Now()
	out, err := cmd.Output()
	took := time.Since(begin)
	if err != nil {
		return 0, "", fmt.Errorf("%.60q: %w; %s", cmd.Args, err, said)
	}
	return took, string(out), nil
}

// program runs a program to its end, as timed does.
func program(ctx context.Context, name string, argv ...string) (time.Duration, string, error) {
	return timed(exec.CommandContext(ctx, name, argv...)) //nolint:gosec // a baseline
}

// waiting runs the line of code that it reads.
const waiting = `
import sys
print("ready", flush=True)
exec(sys.stdin.readline())
sys.stdout.flush()`

// exchange has a Python that waits in a container run printOne, until its output is there. It is a
// taker: what a call costs without the bridge.
func exchange(ctx context.Context) (time.Duration, error) {
	cmd := container(ctx, baseImage, waiting)
	said := &tail{}
	cmd.Stderr = said
	stdin, err := cmd.StdinPipe()
	stdout, failed := cmd.StdoutPipe()
	if err := cmp.Or(err, failed, cmd.Start()); err != nil {
		return 0, err
	}
	lines := bufio.NewReader(stdout)
	ready, err := lines.ReadString('\n')
	time.Sleep(pause)
	begin := time.Now()
	_, failed = io.WriteString(stdin, printOne+"\n")
	out, missing := lines.ReadString('\n')
	took := time.Since(begin)
	stdin.Close()
	err = errors.Join(err, failed, missing, cmd.Wait())
	if ready += out; err != nil || ready != "ready\n1\n" {
		return 0, errors.Join(fmt.Errorf("a Python that waits printed %q; %s", ready, said), err)
	}
	return took, nil
}
