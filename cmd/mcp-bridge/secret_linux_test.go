package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
)

// TestSecretAtTheTerminal: what is typed isn't shown, and the terminal shows again what is typed
// after that, also when the command is interrupted meanwhile.
func TestSecretAtTheTerminal(t *testing.T) {
	for _, interrupt := range []bool{false, true} {
		ours, theirs := openPTY(t)
		home := t.TempDir()
		cmd := exec.Command(self(t), "secret", "set", "tok")
		cmd.Env = []string{asMain + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH"),
			"XDG_RUNTIME_DIR=" + home}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		screen := logFile(t)
		shown := func() string {
			text, err := os.ReadFile(screen.Name())
			must(t, err)
			return string(text)
		}
		go func() { _, _ = io.Copy(screen, ours) }() // ends when the test closes it
		must(t, cmd.Start())
		echoes := func() bool {
			state, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
			must(t, err)
			return state.Lflag&unix.ECHO != 0
		}
		within(t, "the secret is asked for, unseen", func() bool {
			return strings.Contains(shown(), "Secret tok: ") && !echoes()
		})
		var err error
		if interrupt {
			must(t, cmd.Process.Signal(os.Interrupt))
			if err = cmd.Wait(); cmd.ProcessState.ExitCode() != exit.Interrupted {
				t.Errorf("interrupted: %v", err)
			}
		} else {
			_, err = ours.WriteString("hunter2-value\n")
			must(t, err)
			must(t, cmd.Wait())
		}
		if !echoes() {
			t.Errorf("interrupted %v: the terminal doesn't show any more what is typed", interrupt)
		}
		_, err = theirs.WriteString("THE END")
		must(t, err)
		within(t, "the terminal shows all", func() bool { return strings.Contains(shown(), "THE END") })
		if strings.Contains(shown(), "hunter2") {
			t.Errorf("it was shown: %s", shown())
		}
		t.Setenv("HOME", home)
		t.Setenv("XDG_RUNTIME_DIR", home)
		t.Setenv("XDG_STATE_HOME", "")
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
		if got, err := secretValue("tok"); (got == "hunter2-value") == interrupt {
			t.Errorf("interrupted %v: kept is %q, %v", interrupt, got, err)
		}
	}
}
