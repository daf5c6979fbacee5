//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestReapDirs: directories of dead bridges go, with what is in them, and no others. One that tells
// that the record of approvals is old stays, or what code has forged there would be believed.
func TestReapDirs(t *testing.T) {
	parent, self, dead := t.TempDir(), runtime.Self(), deadOwner(t)
	elsewhere := dead
	elsewhere.BootID = "another machine"
	stays := []string{self.NewName(), elsewhere.NewName(), "mcp-bridge-anything", "other"}
	goes, open, door := dead.NewName(), dead.NewName(), dead.NewName()
	for _, name := range slices.Concat(stays, []string{goes, open, door}) {
		must(t, os.Mkdir(filepath.Join(parent, name), 0o700))
		must(t, os.WriteFile(filepath.Join(parent, name, "file"), nil, 0o600))
	}
	if err := os.Chmod(filepath.Join(parent, open), 0o777); err != nil { // others may have put something into it
		t.Fatal(err)
	}
	must(t, os.WriteFile(filepath.Join(parent, door, "a-01234567"), nil, 0o600))
	link := dead.NewName()
	must(t, os.Symlink(filepath.Join(parent, "other"), filepath.Join(parent, link)))
	found, err := reapDirs([]string{parent, filepath.Join(parent, "none")}, self)
	if err != nil || len(found) != 1 || found[0] != (leftDir{filepath.Join(parent, goes), dead.PID}) {
		t.Errorf("got %v, %v", found, err)
	}
	if _, err := os.Stat(filepath.Join(parent, goes)); err == nil {
		t.Error("it is still there")
	}
	for _, name := range append(stays, open, door, link) {
		if _, err := os.Stat(filepath.Join(parent, name, "file")); err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
}

// TestReapAfterBothWereKilled: what a bridge and its watchdog leave that were killed one right
// after the other, doctor --reap removes; the sign that the record of approvals is old, the
// next bridge that runs code.
func TestReapAfterBothWereKilled(t *testing.T) {
	needTime(t)
	needEngine(t)
	before := runtimeDirs(t)
	cmd := command(t, nil)
	c := serve(t, cmd)
	if got := c.python("print(1)", map[string]any{"servers": []string{}}); got.IsError {
		t.Fatalf("got %+v", got)
	}
	pid := cmd.Process.Pid
	c.killed = true
	killBoth(t, pid)
	if err := cmd.Wait(); err == nil {
		t.Error("it was killed and ended well")
	}
	<-c.ended
	var dirs, doors []string
	for _, d := range runtimeDirs(t) { // other bridges of this user may come and go
		o, _ := runtime.OwnerNamed(filepath.Base(d), runtime.Self())
		switch {
		case slices.Contains(before, d) || o.PID != pid:
		case approvals.IsDoor(d):
			doors = append(doors, d)
		default:
			dirs = append(dirs, d)
		}
	}
	if len(dirs) == 0 {
		t.Skip("the engine's service isn't the bridge's own here")
	}
	reap := command(t, nil, "doctor", "--reap", "--json")
	var stderr bytes.Buffer
	reap.Stderr = &stderr
	out, err := reap.Output()
	var said struct{ Directories []leftDir }
	if jerr := json.Unmarshal(out, &said); err != nil || jerr != nil {
		t.Fatalf("got %v, %v: %s%s", err, jerr, out, stderr.String())
	}
	for _, d := range dirs {
		if !slices.Contains(said.Directories, leftDir{d, pid}) {
			t.Errorf("%s is not in %v", d, said.Directories)
		}
		if _, err := os.Stat(d); err == nil {
			t.Errorf("%s is still there", d)
		}
		within(t, "nothing listens in "+d, func() bool { return len(processes(d+"/podman.sock")) == 0 })
	}
	if len(doors) != 1 || slices.Contains(said.Directories, leftDir{doors[0], pid}) {
		t.Fatalf("the signs are %v, and of these was reaped %v", doors, said.Directories)
	}
	next := command(t, nil)
	next.Env = cmd.Env
	// The record is written before the first run.
	if got := serve(t, next).python("print(1)", nil); got.IsError {
		t.Errorf("the next bridge: %+v", got)
	}
	if _, err := os.Stat(doors[0]); !os.IsNotExist(err) {
		t.Errorf("the next bridge leaves %s: %v", doors[0], err)
	}
	within(t, "no container is left", func() bool {
		return len(containersOf(t, []int{pid}))+len(monitorsOf([]int{pid})) == 0
	})
}

// killBoth kills a bridge and its watchdog, so that neither can do anything about it.
func killBoth(t *testing.T, bridge int) {
	t.Helper()
	send := func(pid int, s syscall.Signal) {
		t.Helper()
		must(t, sendSignal(pid, s))
	}
	send(bridge, syscall.SIGSTOP) // or it would start another
	send(watchdogOf(t, bridge), syscall.SIGKILL)
	send(bridge, syscall.SIGKILL)
}
