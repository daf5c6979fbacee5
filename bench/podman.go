package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
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

var endpoint = regexp.MustCompile(`msg=engine .*endpoint=unix://(\S+)`)

// attach asks podman's API service at socket for a container's streams, and has it start.
func attach(socket, id string) (net.Conn, io.Reader, error) {
	ask := func(what, headers string) (net.Conn, *bufio.Reader, error) {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return nil, nil, err
		}
		_, err = fmt.Fprintf(conn, "POST /v4.0.0/libpod/containers/%s/%s HTTP/1.1\r\nHost: podman\r\n%s"+
			"Content-Length: 0\r\n\r\n", id, what, headers)
		in := bufio.NewReader(conn)
		res, failed := http.ReadResponse(in, nil) //nolint:bodyclose // it is the connection's
		if err = errors.Join(err, failed); err == nil && res.StatusCode >= 300 {
			err = fmt.Errorf("podman answered %s with %s", what, res.Status)
		}
		return conn, in, err
	}
	conn, in, err := ask("attach?stdin=true&stdout=true&stream=true", "Connection: Upgrade\r\nUpgrade: tcp\r\n")
	if err != nil {
		return nil, nil, err
	}
	started, _, err := ask("start", "")
	if started != nil {
		started.Close()
	}
	out, to := io.Pipe()
	go func() { // each piece has a header: the stream, three zeros, the length
		var header [8]byte
		for {
			if _, err := io.ReadFull(in, header[:]); err != nil {
				to.CloseWithError(err)
				return
			}
			_, _ = io.CopyN(to, in, int64(binary.BigEndian.Uint32(header[4:])))
		}
	}()
	return conn, out, err
}

// exchange returns a taker that has a guest that waits in a container run printOne, until it is
// done: what a call costs without the bridge. As the bridge does, it reaches the guest by the
// service of podman that the bridge has started, and sends it code that its own Python has
// compiled.
func (c *client) exchange(ctx context.Context) (taker, error) {
	m := endpoint.FindStringSubmatch(c.said.String())
	if m == nil {
		return nil, c.failed("the bridge doesn't say where podman's service is")
	}
	compile := container(ctx, baseImage, entrypoint.Compiler()...)
	compile.Stdin = bytes.NewReader(entrypoint.Source())
	_, compiled, err := timed(compile)
	if err != nil {
		return nil, err
	}
	source, err := entrypoint.SourceWith([]byte(compiled))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (time.Duration, error) {
		create := container(ctx, baseImage, entrypoint.Boot(nil)...)
		create.Args[1] = "create" // which has no flag --passwd
		create.Args = slices.DeleteFunc(create.Args, func(a string) bool { return a == "--passwd=false" })
		_, id, err := timed(create)
		if err != nil {
			return 0, err
		}
		conn, out, err := attach(m[1], strings.TrimSpace(id))
		if err != nil { // it would never end
			_, _, gone := program(ctx, "podman", "rm", "--force", strings.TrimSpace(id))
			return 0, errors.Join(err, gone)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
			return 0, err
		}
		frames := entrypoint.NewReader(out, entrypoint.MaxFrame)
		_, err = conn.Write(source)
		ready, failed := frames.Read()
		time.Sleep(pause)
		order := entrypoint.Execute{Type: entrypoint.TypeExecute, ID: "bench", Code: printOne,
			Options: entrypoint.Options{TimeoutMs: 60_000, MemoryLimitBytes: 512 << 20, MaxLogLines: 100,
				MaxLogChars: 1000, Watch: entrypoint.Watch{MemoryBytes: 512 << 20},
				Rlimits: map[string]int64{"as": 576 << 20, "core": 0, "nofile": 1024}}}
		begin := time.Now()
		err = errors.Join(err, failed, entrypoint.NewWriter(conn, entrypoint.MaxFrame).Write(order))
		var said string
		var f entrypoint.FromGuest
		for err == nil && f.Type != entrypoint.TypeDone {
			f, err = frames.Read()
			said += f.Text
		}
		took := time.Since(begin)
		if ready.Type != entrypoint.TypeReady || !f.OK || said != "1\n" || err != nil {
			return 0, errors.Join(fmt.Errorf("a guest that waits printed %q", said), err)
		}
		return took, nil
	}, nil
}
