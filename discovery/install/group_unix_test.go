//go:build unix

package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestForeignGroup: a file whose group isn't one of the user's is written again where the group may
// do no more than others, and its backup is made.
func TestForeignGroup(t *testing.T) {
	const stranger = 12345
	dir := os.Getenv("MCP_BRIDGE_TEST_GROUP")
	if dir == "" {
		if os.Geteuid() != 0 {
			t.Skip("only root gives a file to a group that isn't the user's")
		}
		dir = t.TempDir()
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) { // the stranger is to get there
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		program := filepath.Join(dir, "test")
		b, err := os.ReadFile(os.Args[0])
		if err == nil {
			err = os.WriteFile(program, b, 0o755)
		}
		for name, mode := range map[string]os.FileMode{"alike": 0o644, "alone": 0o600, "more": 0o664} {
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), []byte("old"), mode)
			}
			if err == nil {
				err = os.Chmod(filepath.Join(dir, name), mode)
			}
			if err == nil {
				err = os.Chown(filepath.Join(dir, name), stranger, 0)
			}
		}
		if err == nil {
			err = os.Chown(dir, stranger, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(program, "-test.run=^TestForeignGroup$", "-test.v")
		c.Env, c.Dir = append(os.Environ(), "MCP_BRIDGE_TEST_GROUP="+dir), dir
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestForeignGroup") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for name, want := range map[string]string{"alike": "", "alone": "", "more": "chgrp"} {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := backUp(&File{Path: path, old: []byte("old"), info: info}); err != nil {
			t.Errorf("a backup of %s: %v", name, err)
		}
		err = writeNew(path+".new", []byte("new"), info.Mode().Perm(), info)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}
