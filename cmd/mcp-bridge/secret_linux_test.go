package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is what a terminal shows. It is safe for concurrent use.
type screen struct {
	mu    sync.Mutex
	shown bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.Write(p)
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// TestSecretAtTheTerminal: what is typed isn't shown, and the terminal shows again what is typed
// after that, also when the command is interrupted meanwhile.
func TestSecretAtTheTerminal(t *testing.T) {
	for _, interrupt := range []bool{false, true} {
		ours, theirs := openPTY(t)
		home := t.TempDir()
		cmd := exec.Command(self(t), "secret", "set", "tok")
		cmd.Env = []string{asMain + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + home}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		var shows screen
		go func() { _, _ = io.Copy(&shows, ours) }() // ends when the test closes it
		must(t, cmd.Start())
		echoes := func() bool {
			state, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
			must(t, err)
			return state.Lflag&unix.ECHO != 0
		}
		for !strings.Contains(shows.text(), "Secret tok: ") || echoes() {
			time.Sleep(time.Millisecond)
		}
		var err error
		if interrupt {
			must(t, cmd.Process.Signal(os.Interrupt))
			if err = cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted {
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
		if strings.Contains(shows.text(), "hunter2") {
			t.Errorf("it was shown: %s", shows.text())
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
