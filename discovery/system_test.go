package discovery

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
)

// TestRoot scans real files, in a directory of the test's own.
func TestRoot(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("links and permissions are others there")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(p string) string { return filepath.Join(home, p) }
	write := func(p, data string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(p)), 0o700),
			os.WriteFile(at(p), []byte(data), mode)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, p string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(p)), 0o700), os.Symlink(to, at(p))); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/real-bridge", "#!/bin/sh\n", 0o700)
	link("real-bridge", "bin/another-name")
	write("bin/not-executable", "", 0o600)
	write("dotfiles/cursor.json", `{"mcpServers": {
		"by link": {"command": "`+at("bin/another-name")+`"},
		"by path": {"command": "another-name", "env": {"PATH": "`+at("bin")+`"}},
		"not found": {"command": "another-name"},
		"other": {"command": "not-executable", "env": {"PATH": "`+at("bin")+`"}}}}`, 0o600)
	link("../dotfiles/cursor.json", ".cursor/mcp.json")
	link("mcp.json", ".config/Code/User/mcp.json") // to itself
	write(".config/Claude/claude_desktop_config.json/x", "", 0o600)

	env := Env{
		Home: home, Dir: home, GOOS: goruntime.GOOS, Executable: at("bin/real-bridge"), Resolve: resolve,
	}
	c := Scan(Root(), env)
	var names []string
	for _, s := range c.Servers {
		names = append(names, s.Name)
	}
	if want := []string{"not found", "other"}; !slices.Equal(names, want) {
		t.Errorf("servers %v, want %v; problems %v", names, want, c.Problems)
	}
	if goruntime.GOOS != "linux" {
		return
	}
	_, problems := brief(c)
	want := []string{
		at(".config/Claude/claude_desktop_config.json") + ": it is a directory, not a file",
		"by link: this is mcp-bridge itself",
		"by path: this is mcp-bridge itself",
		at(".config/Code/User/mcp.json") + ": it can't be read: too many levels of symbolic links",
	}
	if !slices.Equal(problems, want) {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(problems, "\n"), strings.Join(want, "\n"))
	}
}

func TestCurrent(t *testing.T) {
	t.Setenv("HOME", "/nonexistent")
	t.Setenv("XDG_CONFIG_HOME", "/nonexistent/cfg")
	dir := t.TempDir()
	t.Chdir(dir)
	env := Current([]string{"x"})
	if goruntime.GOOS != "windows" && env.Home != "/nonexistent" {
		t.Errorf("home %q", env.Home)
	}
	if env.ConfigHome != "/nonexistent/cfg" || env.GOOS != goruntime.GOOS || len(env.ConfigPaths) != 1 ||
		!filepath.IsAbs(env.Dir) ||
		!filepath.IsAbs(env.Executable) || env.Resolve(env.Executable, "") != env.Executable {
		t.Errorf("got %+v", env)
	}
}
