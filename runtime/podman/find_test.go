//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// script is one in podman's place: a script, in which $1 and $2 are podman's first words.
func script(t *testing.T, dir, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "podman-stand-in")
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncd '"+dir+"' || exit 1\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSocketIsEnough: where a socket listens, podman's program isn't started.
func TestSocketIsEnough(t *testing.T) {
	dir := t.TempDir()
	url := fakeAPI(t, info(true, "v2"))
	socket := filepath.Join(dir, "podman", "podman.sock")
	if err := errors.Join(os.Chmod(dir, 0o700), os.Mkdir(filepath.Dir(socket), 0o700),
		os.Link(strings.TrimPrefix(url, "unix://"), socket)); err != nil {
		t.Fatal(err)
	}
	d := New(Config{RuntimeDir: dir, Binary: script(t, dir, "touch started\n")})
	defer d.Close()
	if f, err := d.Facts(t.Context()); err != nil || f.Endpoint != "unix://"+socket {
		t.Errorf("got %+v, %v", f, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("podman's program was started: %v", err)
	}
}

// TestConnectionBeforeService: where podman names a connection that answers, no service is started.
func TestConnectionBeforeService(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	url := fakeAPI(t, info(true, "v2"))
	if _, err := os.Stat("/run/podman/podman.sock"); err == nil {
		t.Skip("the machine's own socket would be found first")
	}
	d := New(Config{RuntimeDir: dir, AllowRootful: true, Binary: script(t, dir, `case $2 in
connection) echo '[{"Name":"a","URI":"`+url+`","Default":true}]' ;;
*) touch started; exit 1 ;;
esac
`)})
	defer d.Close()
	d.program.asking = time.Minute // however slow the machine is
	f, err := d.Facts(t.Context())
	if err != nil || f.Endpoint != url {
		t.Errorf("got %+v, %v; want the connection that podman names", f, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("podman's program was started for more: %v", err)
	}
}

// TestExplain: what an engine refuses because of a setting comes with that setting.
func TestExplain(t *testing.T) {
	d := New(Config{Hardening: runtime.Hardening{OCIRuntime: "nope"}})
	defer d.Close()
	for _, tt := range []struct{ says, hint string }{
		{`requested OCI runtime nope is not available: invalid argument`, "MCP_BRIDGE_OCI_RUNTIME"},
		{"opening seccomp profile failed: open /p/seccomp.json: no such file or directory",
			"MCP_BRIDGE_SECCOMP=engine"},
		{"storage is busy", ""},
	} {
		c := &connection{d: d, profile: "/p/seccomp.json", facts: runtime.Facts{Remote: true}}
		err := d.explain(c, errors.New(tt.says), false)
		var un *runtime.UnavailableError
		if errors.As(err, &un) != (tt.hint != "") || !strings.Contains(err.Error(), tt.says) ||
			un != nil && !strings.Contains(un.Hint(), tt.hint) {
			t.Errorf("%s: got %v", tt.says, err)
		}
	}
}

// TestInstallHasTags: the command that a build without tags names makes one with them.
func TestInstallHasTags(t *testing.T) {
	tags, err := os.ReadFile("../../scripts/build-tags")
	if err != nil {
		t.Fatal(err)
	}
	if want := "-tags " + strings.Join(strings.Fields(string(tags)), ",") +
		" "; !strings.Contains(install, want) {
		t.Errorf("the command is %q, which lacks %q", install, want)
	}
}
