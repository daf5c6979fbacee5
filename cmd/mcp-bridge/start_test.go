//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingIsStartedBeforeItIsNeeded: a bridge that has answered initialize and listed its tools
// has run nothing, neither watchdog nor server nor an engine's program, and has spoken to no
// engine. The first search starts a server, and the first run looks for an engine and starts the
// watchdog: what wasn't seen before would have been.
func TestNothingIsStartedBeforeItIsNeeded(t *testing.T) {
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	leave := func(name string) string {
		path := filepath.Join(dir, name)
		script := fmt.Sprintf("#!/bin/sh\necho %s >>'%s'\nexit 1\n", name, trace)
		must(t, os.WriteFile(path, []byte(script), 0o700))
		return path
	}
	leave("podman")
	leave("docker")
	engines := map[string]*listener{"CONTAINER_HOST": listen(t, dir, "podman.sock"),
		"DOCKER_HOST": listen(t, dir, "docker.sock")}

	cmd := command(t, map[string]entry{"traced": {Command: leave("server")}})
	cmd.Env = append(cmd.Env, asOpen+"=1", "MCP_BRIDGE_RUNTIME=", "PATH="+dir+":"+os.Getenv("PATH"))
	for name, l := range engines {
		cmd.Env = append(cmd.Env, name+"=unix://"+l.path)
	}
	c := serve(t, cmd)
	c.request("tools/list", map[string]any{})
	pid := cmd.Process.Pid
	if children := childrenOf(pid); len(children) > 0 {
		t.Errorf("it has started %v", children)
	}
	if ran, err := os.ReadFile(trace); err == nil {
		t.Errorf("it has run %q", ran)
	}
	for name, l := range engines {
		if n := l.accepted(t); n > 0 {
			t.Errorf("it has connected %d times to the engine of %s", n, name)
		}
	}
	noSockets(t, pid)

	c.request("tools/call", map[string]any{"name": "search_tools",
		"arguments": map[string]any{"query": "anything"}})
	if ran, _ := os.ReadFile(trace); !strings.Contains(string(ran), "server") {
		t.Errorf("a search has run %q, want the server", ran)
	}
	if r := c.python("print(1)", nil); !r.IsError {
		t.Errorf("got %+v from no engine", r)
	}
	for name, l := range engines {
		if l.accepted(t) == 0 {
			t.Errorf("a run has not connected to the engine of %s", name)
		}
	}
	watchdogOf(t, pid)
}

// noSockets looks at what a process has open now.
func noSockets(t *testing.T, pid int) {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("its descriptors can't be seen: %v", err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:") {
			t.Errorf("it has a socket: %s", fd)
		}
	}
}

// listener is a socket on which every connection is accepted, counted and closed.
type listener struct {
	path  string
	peers chan string // what each connection calls itself, in their order
}

func listen(t *testing.T, dir, name string) *listener {
	t.Helper()
	l := &listener{path: filepath.Join(dir, name), peers: make(chan string, 1000)}
	socket, err := net.Listen("unix", l.path)
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}
			l.peers <- conn.RemoteAddr().String()
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		socket.Close()
		<-ended
	})
	return l
}

// accepted is how many others have connected since it was last asked, even if they hung up at once:
// connections are accepted in their order, so all that were there before one of its own.
func (l *listener) accepted(t *testing.T) (n int) {
	t.Helper()
	from := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"}
	conn, err := net.DialUnix("unix", from, &net.UnixAddr{Name: l.path, Net: "unix"})
	must(t, err)
	defer conn.Close()
	for peer := <-l.peers; peer != from.Name; peer = <-l.peers {
		n++
	}
	return n
}
