package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
)

// openPTY returns both ends of a pseudo-terminal of 78 columns.
func openPTY(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 78})
	}
	must(t, err)
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}

// onTerminal returns what a command shows on a terminal of 78 columns.
func onTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	ours, theirs := openPTY(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, theirs, theirs
	var out bytes.Buffer
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(&out, ours) // ends with an error when the terminal's last user is gone
		close(done)
	}()
	err := cmd.Run()
	_ = theirs.Close()
	<-done
	if err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

// TestServersOnATerminal: lines fit and break between words, the home is ~, and there are colours
// unless the user wants none.
func TestServersOnATerminal(t *testing.T) {
	root := allHosts(t)
	show := func(env ...string) string {
		cmd := exec.Command(self(t), "servers")
		cmd.Dir = filepath.Join(root, "w/shop")
		cmd.Env = append([]string{asMain + "=1", "HOME=" + root + "/home/u", "PATH=" + os.Getenv("PATH"),
			"TERM=xterm"}, env...)
		return onTerminal(t, cmd)
	}
	plain := show("NO_COLOR=1")
	for line := range strings.Lines(plain) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 78 &&
			strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	holds(t, plain, "~/.cursor/mcp.json (Cursor, user)\n", "\n    next: ", "~/.claude.json")
	if strings.Contains(plain, root+"/home/u") {
		t.Errorf("the home is written out:\n%s", plain)
	}
	for env, colours := range map[string]bool{"NO_COLOR=1": false, "TERM=dumb": false, "A=b": true} {
		if got := show(env); strings.Contains(got, "\x1b[") != colours {
			t.Errorf("%s: colours are %v, want %v:\n%.300q", env, !colours, colours, got)
		}
	}
}

// TestServeOnATerminal says what it waits for.
func TestServeOnATerminal(t *testing.T) {
	ours, theirs := openPTY(t)
	cmd := command(t, nil, "serve")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = theirs, &stderr
	if _, err := ours.Write([]byte{4}); err != nil { // Ctrl-D: the end of the input
		t.Fatal(err)
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	if want := "waiting for an MCP client on standard input; Ctrl-C ends"; !strings.Contains(stderr.String(),
		want) {
		t.Errorf("%q is not in %s", want, stderr.String())
	}
}

// A replier is the screen of a user who answers each question once it is there.
type replier struct {
	shown    bytes.Buffer // not embedded: its ReadFrom would show what is copied without an answer
	keyboard io.Writer
	answer   string
}

func (r *replier) String() string { return r.shown.String() }

func (r *replier) Write(p []byte) (int, error) {
	n, err := r.shown.Write(p)
	if strings.HasSuffix(r.String(), "[y/N] ") {
		_, err = io.WriteString(r.keyboard, r.answer)
	}
	return n, err
}

// TestAskerOnATerminal: y is yes, and anything else is no, also what was typed before the question;
// without a terminal the user is not asked.
func TestAskerOnATerminal(t *testing.T) {
	ours, theirs := openPTY(t)
	stderr := &replier{keyboard: ours}
	a := &app{io: &terminal.Streams{In: theirs, Err: terminal.New(stderr)}}
	ask := a.asker(terminal.NewCodeOutput(nil, nil))
	for typed, want := range map[string]bool{"y\n": true, "yes\n": true, "\n": false, "n\n": false,
		"always\n": false} {
		if _, err := ours.WriteString("y\n"); err != nil { // to a question that code has made up
			t.Fatal(err)
		}
		stderr.answer = typed
		if got, err := ask(t.Context(), "May x?"); got != want || err != nil {
			t.Errorf("%q is %v, %v; want %v", typed, got, err, want)
		}
	}
	if !strings.Contains(stderr.String(), "May x?\nAllow it? [y/N] ") {
		t.Errorf("it asks %q", stderr.String())
	}
	if (&app{io: &terminal.Streams{In: strings.NewReader("y\n")}}).asker(nil) != nil {
		t.Error("a pipe is asked")
	}
}

// TestDoctorInterrupted: what fails since the user ended the command is not told as a failure.
func TestDoctorInterrupted(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	must(t, err)
	defer l.Close()
	cmd := command(t, nil, "doctor")
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_RUNTIME=podman", "CONTAINER_HOST=unix://"+socket)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	must(t, cmd.Start())
	c, err := l.Accept() // the engine is asked, and never answers
	must(t, err)
	defer c.Close()
	must(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	if got := stdout.String(); strings.Contains(got, "fail") ||
		!strings.HasSuffix(got, "note  interrupted       not everything was checked\n") {
		t.Errorf("it says\n%s", got)
	}
	if code := cmd.ProcessState.ExitCode(); code != exit.Interrupted {
		t.Errorf("it ended with %d", code)
	}
}

// TestRunAsksOnATerminal: a policy that asks is answered where the command was typed, and a
// traceback names the file that was run.
func TestRunAsksOnATerminal(t *testing.T) {
	needTime(t)
	anyEngine(t)
	dir := t.TempDir()
	policy, script := filepath.Join(dir, "policy.toml"), filepath.Join(dir, "script.py")
	for path, content := range map[string]string{policy: `default = "ask"`,
		script: "print(mcp_shop.add(a=40, b=2)['sum'])\n1/0\n"} {
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	for typed, want := range map[string]string{"y\n": "ZeroDivisionError", "n\n": "the user has said no"} {
		ours, theirs := openPTY(t)
		out := &replier{keyboard: ours, answer: typed}
		cmd := command(t, map[string]entry{"shop": shop(t)}, "run", script)
		cmd.Env = append(cmd.Env, "MCP_BRIDGE_POLICY="+policy)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, out, out
		_ = cmd.Run()
		holds(t, out.String(), want, `wants to call tool "add" of server "shop"`, "Allow it? [y/N] ",
			`File "`+script+`", line `)
	}
}
