package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// baseImage is what the bridge runs code in, by `make image`; dataImage has the environment data.
const (
	baseImage = "localhost/mcp-bridge/python:latest"
	dataImage = "localhost/mcp-bridge/env-data:latest"
)

// podmanRun returns a taker that runs printOne in an image.
func podmanRun(image string) taker {
	return func(ctx context.Context) (time.Duration, error) {
		took, out, err := timed(container(ctx, image, "python3", "-I", "-B", "-c", printOne))
		if err == nil && out != "1\n" {
			err = fmt.Errorf("podman run printed %q", out)
		}
		return took, err
	}
}

// container returns a command that runs code in an image, with flags that say what
// runtime/podman/spec.go says by the API.
func container(ctx context.Context, image string, command ...string) *exec.Cmd {
	const flags = "run --rm -i --pull=never --network=none --read-only --read-only-tmpfs=false " +
		"--user=65534:65534 --cap-drop=all --security-opt=no-new-privileges " +
		"--env=PATH=/usr/local/bin:/usr/bin:/bin --no-hosts --ipc=none --uts=private --pid=private " +
		"--cgroupns=private --systemd=false --log-driver=none --image-volume=ignore --no-healthcheck " +
		"--http-proxy=false --passwd=false --timeout=600 --ulimit=nofile=1024:1024 --ulimit=core=0:0"
	argv := strings.Fields(flags)
	for _, dir := range []string{"/workspace", "/tmp", "/ipc", "/dev/shm"} {
		argv = append(argv, "--tmpfs="+dir+":rw,nosuid,nodev,noexec,notmpcopyup,size=64m,mode=1777")
	}
	argv = append(append(argv, image), command...)
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

// exchange has a guest that waits in a container run printOne, until it is done: what a call costs
// without the bridge. It is a taker.
func exchange(ctx context.Context) (time.Duration, error) {
	cmd := container(ctx, baseImage, entrypoint.Boot(nil)...)
	said := &tail{}
	cmd.Stderr = said
	stdin, err := cmd.StdinPipe()
	stdout, failed := cmd.StdoutPipe()
	if err := cmp.Or(err, failed, cmd.Start()); err != nil {
		return 0, err
	}
	frames := entrypoint.NewReader(stdout, entrypoint.MaxFrame)
	_, err = stdin.Write(entrypoint.Source())
	ready, failed := frames.Read()
	time.Sleep(pause)
	order := entrypoint.Execute{Type: entrypoint.TypeExecute, ID: "bench", Code: printOne,
		Options: entrypoint.Options{TimeoutMs: 60_000, MemoryLimitBytes: 512 << 20, MaxLogLines: 100,
			MaxLogChars: 1000}}
	begin := time.Now()
	err = errors.Join(err, failed, entrypoint.NewWriter(stdin, entrypoint.MaxFrame).Write(order))
	var out string
	var f entrypoint.FromGuest
	for err == nil && f.Type != entrypoint.TypeDone {
		f, err = frames.Read()
		out += f.Text
	}
	took := time.Since(begin)
	stdin.Close()
	err = errors.Join(err, cmd.Wait())
	if ready.Type != entrypoint.TypeReady || !f.OK || out != "1\n" || err != nil {
		return 0, errors.Join(fmt.Errorf("a guest that waits printed %q; %s", out, said), err)
	}
	return took, nil
}
