//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// daemon is a dockerd that test/engines/with-engine starts again when it was killed, but not before
// it may.
type daemon struct {
	t    *testing.T
	hold string
}

func newDaemon(t *testing.T) daemon {
	t.Helper()
	if anyEngine(t) != "docker" {
		t.Skip("the engine isn't docker")
	}
	dir := os.Getenv("MCP_BRIDGE_TEST_RESTART")
	if dir == "" {
		t.Skip("MCP_BRIDGE_TEST_RESTART is not set: test/engines/inside would start dockerd again when it was " +
			"killed")
	}
	must(t, os.Mkdir(dir, 0o700))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return daemon{t, filepath.Join(dir, "hold")}
}

// kill kills the process of that program, of which there is one.
func (d daemon) kill(program string) {
	d.t.Helper()
	var found []int
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	for _, pid := range running(program) {
		if its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err == nil && its == namespace {
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		d.t.Fatalf("there are %d processes of %s, want 1", len(found), program)
	}
	must(d.t, syscall.Kill(found[0], syscall.SIGKILL))
	withinTime(d.t, time.Minute, program+" has ended", func() bool {
		return !slices.Contains(running(program), found[0])
	})
}

// running returns the processes that execute a program of that name. One that has ended does not.
func running(program string) (found []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil && filepath.Base(path) == program {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			found = append(found, pid)
		}
	}
	return found
}

// away keeps dockerd from coming back.
func (d daemon) away() {
	d.t.Helper()
	must(d.t, os.WriteFile(d.hold, nil, 0o600))
}

// back waits until dockerd answers again.
func (d daemon) back() {
	d.t.Helper()
	if err := os.Remove(d.hold); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	withinTime(d.t, time.Minute, "dockerd is back", func() bool {
		return exec.Command("docker",
			"version").Run() == nil
	})
}

// shims are the processes beside containers, which go on without dockerd, and those of the
// containers.
func shims(ids []string) (shims, inside []int) {
	for _, pid := range running("containerd-shim-runc-v2") {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		for _, id := range ids {
			if strings.Contains(string(line), "\x00"+id) {
				shims, inside = append(shims, pid), append(inside, childrenOf(pid)...)
			}
		}
	}
	return shims, inside
}

// TestDockerdKilledOnEngine: dockerd is killed in the middle of a run and stays away for a while.
// The run ends before long as the engine's failure, calls fail with the reason, and once it is back
// they work and what went on without it is removed.
func TestDockerdKilledOnEngine(t *testing.T) {
	d := newDaemon(t)
	c := serve(t, command(t, nil))
	pids := []int{c.cmd.Process.Pid}
	_, answer := c.startLong()
	ids := idsOf(containersOf(t, pids))
	if _, inside := shims(ids); len(inside) == 0 {
		t.Fatalf("nothing runs in %v, so that this test can't fail", ids)
	}
	d.away()
	begin := time.Now()
	d.kill("dockerd")
	got := parseAnswer(t, <-answer)
	if !got.IsError || !strings.Contains(got.Text, "up\n") || !strings.Contains(got.Text, "status: engine") ||
		!strings.Contains(got.Text, "Next: ") {
		t.Errorf("got %+v", got)
	}
	t.Logf("the run ended after %v: %s", time.Since(begin).Round(time.Millisecond), got.Text)
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("the run ended %v after its engine", took)
	}
	if got := c.python("print('away')", map[string]any{"servers": []string{}}); !got.IsError ||
		!strings.Contains(got.Text, "Next: ") {
		t.Errorf("while it is away: %+v", got)
	}
	d.back()
	c.works()
	d.gone(c, ids)
}

// TestContainerdKilledOnEngine: the same with dockerd's own containerd, which dockerd starts again
// after ten seconds. A run may outlive that. What ended meanwhile dockerd takes for running until
// it is started again itself (docker 26): an entry in its list and no process.
func TestContainerdKilledOnEngine(t *testing.T) {
	d := newDaemon(t)
	c := serve(t, command(t, nil))
	_, answer := c.start("tools/call", map[string]any{
		"name": "run_python",
		"arguments": map[string]any{"code": "print('up', flush=True)\nimport time; time.sleep(15); print('over')",
			"servers": []string{}, "timeout": 60},
		"_meta": map[string]any{"progressToken": "p"},
	})
	within(t, "the code runs", func() bool { return strings.Contains(string((<-c.notes).Params), "up") })
	ids := idsOf(containersOf(t, []int{c.cmd.Process.Pid}))
	begin := time.Now()
	d.kill("containerd")
	got := parseAnswer(t, <-answer)
	t.Logf("the run ended after %v: %+v", time.Since(begin).Round(time.Millisecond), got)
	well, engine := !got.IsError && got.Text == "up\nover\n", got.IsError &&
		strings.Contains(got.Text, "status: engine")
	if !well && !engine {
		t.Errorf("got %+v, want its whole output or the engine's failure", got)
	}
	works := func() bool {
		got := c.python("print('back')", map[string]any{"servers": []string{}})
		return !got.IsError && got.Text == "back\n"
	}
	withinTime(t, time.Minute, "calls work again", works)
	withinTime(t, time.Minute, "no process is left", func() bool {
		_,
			inside := shims(ids)
		return len(inside) == 0
	})
	d.kill("dockerd")
	d.back()
	withinTime(t, time.Minute, "calls work again", works)
	d.gone(c, ids)
}

// gone waits until nothing of these containers is left, and no other of the bridge's but a standby.
func (d daemon) gone(c *client, ids []string) {
	d.t.Helper()
	pids := []int{c.cmd.Process.Pid}
	withinTime(d.t, time.Minute, "docker lists none of the containers of before", func() bool {
		return !slices.ContainsFunc(idsOf(containersOf(d.t, pids)),
			func(id string) bool { return slices.Contains(ids, id) })
	})
	withinTime(d.t, time.Minute, "nothing runs in them", func() bool {
		_,
			inside := shims(ids)
		return len(inside) == 0
	})
	withinTime(d.t, time.Minute, "no container is left but a standby",
		func() bool { return len(containersOf(d.t, pids)) <= keptReady })
	// A rootless dockerd that comes back is in another mount namespace, where it doesn't find the
	// sockets of the shims of before. They stay, idle, until docker's whole service is stopped.
	if os.Geteuid() == 0 {
		withinTime(d.t, time.Minute, "no shim is left", func() bool {
			left,
				_ := shims(ids)
			return len(left) == 0
		})
	}
}

// idsOf are the ids of what containersOf has found.
func idsOf(found []string) (ids []string) {
	for _, c := range found {
		ids = append(ids, strings.TrimPrefix(c, "container "))
	}
	return ids
}
