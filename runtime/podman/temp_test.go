//go:build unix

package podman

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// asFull makes the test process one that can write no byte to a file.
const asFull = "MCP_BRIDGE_TEST_FULL"

// TestWritableTemp: a directory for temporary files that podman could not use is told, and nothing
// is left in one.
func TestWritableTemp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sealed := t.TempDir()
	if err := os.Chmod(sealed, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		sealed = "/proc" // elsewhere root may write whatever the modes say
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, dir string
		bad       bool
	}{
		{"unset", "", false},
		{"everybody's, without the sticky bit", open, true},
		{"usable", t.TempDir(), false},
		{"not there", filepath.Join(t.TempDir(), "none"), true},
		{"a file", file, true},
		{"not writable", sealed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("TMPDIR", tt.dir)
			err := New(Config{}).program.unwritable()
			if (err != nil) != tt.bad || err != nil &&
				(!strings.Contains(err.Error(), "TMPDIR") || errors.Is(err, fs.ErrNotExist)) {
				t.Errorf("got %v", err)
			}
			if tt.dir != "" && !tt.bad {
				empty(t, tt.dir)
			}
		})
	}
}

// TestPrivateDirInTemp: without a runtime directory, nothing is made in a TMPDIR where others could
// put another in its place.
func TestPrivateDirInTemp(t *testing.T) {
	for _, tt := range []struct {
		mode os.FileMode
		hint string // empty: it is used
	}{
		{0o777, "chmod o-w "},
		{0o777 | os.ModeSticky, ""},
		{0o700, ""},
	} {
		t.Run(tt.mode.String(), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, tt.mode); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TMPDIR", dir)
			made, forget, err := New(Config{}).program.privateDir()
			if err == nil {
				forget()
			}
			var un *runtime.UnavailableError
			switch {
			case tt.hint == "" && (err != nil || filepath.Dir(made) != dir):
				t.Errorf("got %q, %v", made, err)
			case tt.hint == "":
			case !errors.As(err, &un) || !strings.Contains(un.Error(), dir+" can be written to by everybody") ||
				!strings.HasPrefix(un.Hint(), tt.hint+dir):
				t.Errorf("got %v", err)
			default:
				empty(t, dir)
			}
		})
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", dir, left, err)
	}
}

// TestFullTempDir: a directory in which a file can be made and nothing can be written is a full
// one. The limit of a file's size stands for that, in a process of its own.
func TestFullTempDir(t *testing.T) {
	if os.Getenv(asFull) != "" {
		signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit then fails, as on a full disk
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{}); err != nil {
			t.Fatal(err)
		}
		if err := New(Config{RuntimeDir: os.Getenv("XDG_RUNTIME_DIR")}).program.unwritable(); err == nil ||
			!strings.Contains(err.Error(), os.Getenv(asFull)) ||
			!strings.Contains(err.Error(), syscall.EFBIG.Error()) {
			t.Errorf("got %v", err)
		}
		return
	}
	for _, name := range []string{"TMPDIR", "XDG_RUNTIME_DIR"} {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil { // others' is not used
			t.Fatal(err)
		}
		full := exec.Command(os.Args[0], "-test.run", "^TestFullTempDir$", "-test.v")
		full.Env = append(os.Environ(), asFull+"="+name, "TMPDIR=", "XDG_RUNTIME_DIR=", name+"="+dir)
		if out, err := full.CombinedOutput(); err != nil ||
			!strings.Contains(string(out), "--- PASS: TestFullTempDir") {
			t.Errorf("%v: %s", err, out)
		}
		empty(t, dir)
	}
}
