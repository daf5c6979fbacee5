//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
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
	cmd.Args = append(cmd.Args, "serve", "--http", "systemd")
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
	cmd.Args = append(cmd.Args, "serve", "--http", "systemd")
	if out, err := cmd.CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "can be reached from other machines") {
		t.Errorf("%v, %s", err, out)
	}
	for name, vars := range map[string][]string{
		"nothing":       nil,
		"another's":     {"LISTEN_PID=1", "LISTEN_FDS=1"},
		"half a notice": {"LISTEN_FDS=1"},
	} {
		cmd := with(command(t, nil, "serve", "--http", "systemd"), vars...)
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

// TestUnitIsActivated: what the service of packaging/systemd starts serves under systemd's own
// activation, at the first connection.
func TestUnitIsActivated(t *testing.T) {
	activate, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip("there is no systemd-socket-activate")
	}
	unit, err := os.ReadFile(filepath.Join("..", "..", "packaging", "systemd", "mcp-bridge.service"))
	must(t, err)
	_, rest, _ := strings.Cut(string(unit), "\nExecStart=/usr/bin/mcp-bridge ")
	args, _, found := strings.Cut(rest, "\n")
	if !found {
		t.Fatal("the service has no ExecStart")
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := socket.Addr().String()
	must(t, socket.Close())
	plain := command(t, nil, strings.Fields(args)...)
	cmd := exec.Command(activate, "--listen="+addr)
	for _, variable := range plain.Env { // it hands on no others
		cmd.Args = append(cmd.Args, "--setenv="+variable)
	}
	cmd.Args = append(append(cmd.Args, plain.Path), plain.Args[1:]...)
	cmd.Env, cmd.Stderr = plain.Env, logFile(t)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	within(t, "it listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	l := &overHTTP{t: t, url: "http://" + addr + "/mcp"}
	if status, answer, _ := l.post("", "tools/list", "", ""); status != 200 ||
		!strings.Contains(answer, "run_python") {
		t.Errorf("it answers %d, %s", status, answer)
	}
}

// TestTimeToEnd: systemd and Kubernetes give a bridge the time that its longest run may take by
// default, and some for its end.
func TestTimeToEnd(t *testing.T) {
	cfg, err := settings.Read()
	must(t, err)
	least := int(time.Duration(cfg.MaxTimeout)/time.Second) + 15
	for file, setting := range map[string]string{
		"systemd/mcp-bridge.service":             "\nTimeoutStopSec=",
		"kubernetes/bridge.yaml":                 " terminationGracePeriodSeconds: ",
		"kubernetes/chart/templates/bridge.yaml": " terminationGracePeriodSeconds: ",
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "packaging", filepath.FromSlash(file)))
		must(t, err)
		_, rest, _ := strings.Cut(string(text), setting)
		var seconds int
		if _, err := fmt.Sscan(rest, &seconds); err != nil || seconds < least {
			t.Errorf("%s: %d s are given (%v), want %d at least", file, seconds, err, least)
		}
	}
}
