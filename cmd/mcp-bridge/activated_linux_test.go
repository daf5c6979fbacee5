package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestActivatedAlone: no program that the bridge starts has the socket that was handed over to it,
// nor is told of one: it is taken before anything is started.
func TestActivatedAlone(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer socket.Close()
	cmd := activate(t, socket)
	cmd.Args = append(cmd.Args, "serve", "--http", bySystemd)
	l := listenTo(t, cmd)
	handed := nameOf(t, socket.(*net.TCPListener))
	if own := socketsOf(t, cmd.Process.Pid); !strings.Contains(own, handed) {
		t.Fatalf("the bridge itself doesn't have %s: %s", handed, own)
	}
	l.python("", "print(1)") // before the first run there is no watchdog, whatever comes of it
	within(t, "there is a watchdog", func() bool { return len(childrenOf(cmd.Process.Pid)) > 0 })
	for _, child := range childrenOf(cmd.Process.Pid) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
		if has := socketsOf(t, child); strings.Contains(has, handed) {
			t.Errorf("%q has the socket: %s", name, has)
		}
		if environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child)); strings.Contains(string(environ), "LISTEN_") {
			t.Errorf("%q is told of a socket", name)
		}
	}
}

// nameOf returns the name of a socket in /proc.
func nameOf(t *testing.T, l *net.TCPListener) string {
	t.Helper()
	raw, err := l.SyscallConn()
	must(t, err)
	var about syscall.Stat_t
	must(t, raw.Control(func(fd uintptr) { err = syscall.Fstat(int(fd), &about) }))
	must(t, err)
	return fmt.Sprintf("socket:[%d]", about.Ino)
}

// socketsOf returns what the descriptors of a process are.
func socketsOf(t *testing.T, pid int) string {
	t.Helper()
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	must(t, err)
	var all []string
	for _, name := range names {
		if link, err := os.Readlink(name); err == nil { // it may have been closed
			all = append(all, link)
		}
	}
	return strings.Join(all, " ")
}
