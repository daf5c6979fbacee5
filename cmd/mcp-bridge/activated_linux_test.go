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

// TestActivatedAlone: a program that the bridge starts doesn't have the socket that was handed over
// to it, nor is it told of one.
func TestActivatedAlone(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer socket.Close()
	handed := nameOf(t, socket.(*net.TCPListener))
	said := filepath.Join(t.TempDir(), "said")
	servers := map[string]entry{"probe": {Command: "sh", Args: []string{"-c",
		`{ ls -l /proc/$$/fd; env; echo end; } >"$0.new"; mv "$0.new" "$0"; exec cat >&2`, said}}}
	cmd := activate(t, socket, "MCP_BRIDGE_CONFIG="+configure(t, servers), "MCP_BRIDGE_UPSTREAM_START_TIMEOUT=1")
	cmd.Args = append(cmd.Args, "serve", "--http", "systemd")
	l := listenTo(t, cmd)
	l.post("", "tools/call", "search_tools", `"name":"search_tools","arguments":{"server":"probe"},`)
	var got []byte
	within(t, "the server has said what it has", func() bool {
		got, err = os.ReadFile(said)
		return err == nil
	})
	switch text := string(got); {
	case !strings.Contains(text, " 0 -> ") || !strings.HasSuffix(text, "end\n"):
		t.Errorf("what it has isn't known: %s", text)
	case strings.Contains(text, handed) || strings.Contains(text, "LISTEN_"):
		t.Errorf("it has %s, or is told of one:\n%s", handed, text)
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
