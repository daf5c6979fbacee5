//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// activate is the command of a bridge to which the file of a socket is handed over, as systemd
// does it.
func activate(t *testing.T, socket net.Listener, vars ...string) *exec.Cmd {
	t.Helper()
	file, err := socket.(interface{ File() (*os.File, error) }).File()
	must(t, err)
	t.Cleanup(func() { file.Close() })
	plain := with(command(t, nil), vars...)
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`, plain.Path)
	cmd.Env, cmd.ExtraFiles = plain.Env, []*os.File{file}
	return cmd
}

// TestActivated: the bridge serves on the socket that systemd hands over.
func TestActivated(t *testing.T) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer socket.Close()
	cmd := activate(t, socket)
	cmd.Args = append(cmd.Args, "serve", "--http", bySystemd)
	l := listenTo(t, cmd)
	if want := "http://" + socket.Addr().String() + "/mcp"; l.url != want {
		t.Errorf("it listens at %s, want %s", l.url, want)
	}
	if status, answer, _ := l.post("", "tools/list", "", ""); status != 200 ||
		!strings.Contains(answer, "run_python") {
		t.Errorf("it answers %d, %s", status, answer)
	}
}

// TestActivatedExposed: a socket that others reach is not served without authentication.
func TestActivatedExposed(t *testing.T) {
	socket, err := net.Listen("tcp", "0.0.0.0:0")
	must(t, err)
	defer socket.Close()
	cmd := activate(t, socket)
	cmd.Args = append(cmd.Args, "serve", "--http", bySystemd)
	if out, err := cmd.CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "can be reached from other machines") {
		t.Errorf("%v, %s", err, out)
	}
	for name, vars := range map[string][]string{
		"nothing":       nil,
		"another's":     {"LISTEN_PID=1", "LISTEN_FDS=1"},
		"half a notice": {"LISTEN_FDS=1"},
	} {
		cmd := with(command(t, nil, "serve", "--http", bySystemd), vars...)
		if out, err := cmd.CombinedOutput(); err == nil ||
			!strings.Contains(string(out), "no socket was handed over") {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}

// TestUnits: systemd reads the units as they are shipped.
func TestUnits(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	dir := t.TempDir()
	for _, name := range []string{"mcp-bridge.service", "mcp-bridge.socket"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "packaging", "systemd", name))
		must(t, err)
		// its program isn't installed here
		text = []byte(strings.ReplaceAll(string(text), "/usr/bin/mcp-bridge", self(t)))
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	cmd := exec.Command(verify, "--user", "--man=no", "verify", filepath.Join(dir, "mcp-bridge.service"),
		filepath.Join(dir, "mcp-bridge.socket"))
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), dir) {
		t.Errorf("%v: %s", err, out)
	}
}
