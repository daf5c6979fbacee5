package install

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestStartedByNpx: npx is in a directory that a host of the desktop doesn't know, as nvm's are.
// The user's entry names it by its whole path, with a PATH that has node; a project's does not.
func TestStartedByNpx(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there npx is npx.cmd, and PATH is the system's")
	}
	home := t.TempDir()
	exe := filepath.Join(home, ".npm/_npx/1a2b/node_modules/mcp-bridge-linux-x64/bin/mcp-bridge")
	bin := filepath.Join(home, ".nvm/bin")
	project, env := filepath.Join(home, "project"), filepath.Join(home, "elsewhere", ".venv")
	if err := errors.Join(os.MkdirAll(bin, 0o700), os.MkdirAll(project, 0o700),
		os.WriteFile(filepath.Join(bin, "npx"), []byte("#!/bin/sh\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	added := filepath.Join(home, ".npm/_npx/1a2b/node_modules/.bin")
	t.Chdir(project)
	t.Setenv("HOME", home)
	t.Setenv("VIRTUAL_ENV", env)
	t.Setenv("PATH", strings.Join([]string{filepath.Join(env, "bin"), added, filepath.Join(project, "bin"), bin,
		"/usr/bin"}, ":"))

	command, vars, err := StartedWith(exe, "dev", false)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(bin, "npx"), "-y"}; !slices.Equal(command[:2], want) ||
		!strings.HasPrefix(command[2], program) {
		t.Errorf("the user's file has %q", command)
	}
	if want := []string{"PATH=" + bin + ":/usr/bin"}; !slices.Equal(vars, want) {
		t.Errorf("with %q, want %q", vars, want)
	}
	t.Chdir(home) // below which all of the user's is
	if _, vars, err := StartedWith(exe, "dev", false); err != nil || !strings.Contains(vars[0], ":"+bin+":") {
		t.Errorf("at home with %q, %v", vars, err)
	}
	command, vars, err = StartedWith(exe, "dev", true)
	if err != nil || command[0] != "npx" || vars != nil {
		t.Errorf("a project's file has %q with %q: %v", command, vars, err)
	}
}
