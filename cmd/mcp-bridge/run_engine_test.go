package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestRunOnEngine is run_python from end to end, on each engine.
func TestRunOnEngine(t *testing.T) {
	needTime(t)
	name := anyEngine(t)
	t.Run("run", func(t *testing.T) {
		cmd := command(t, map[string]entry{"shop": shop(t)}, "run", "-c",
			"import sys\nprint(mcp_shop.add(a=40, b=2)['sum'])\nprint('err', file=sys.stderr)\nsys.exit(3)")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Errorf("got %v, want code 3", err)
		}
		if stdout.String() != "42\n" || !strings.Contains(stderr.String(), "err\n") {
			t.Errorf("got %q and %q", stdout.String(), stderr.String())
		}
	})
	t.Run("serve", func(t *testing.T) {
		c := serve(t, command(t, nil))
		for range 2 {
			c.works()
		}
		if got := c.python("while True: pass", map[string]any{"servers": []string{}, "timeout": 1}); !got.IsError ||
			!strings.Contains(got.Text, "1s") {
			t.Errorf("got %+v", got)
		}
		within(t, "no container is left but a standby", func() bool {
			return len(containersOf(t,
				[]int{c.cmd.Process.Pid})) <= keptReady
		})
	})
	t.Run("doctor", func(t *testing.T) {
		r := doctorSays(t)
		if !r.Works || !find(r.Rows, row{"engine " + name, fine, name, "chosen", ""}) ||
			!find(r.Rows, row{"run", fine, "Python 3", "", ""}) {
			t.Errorf("got %+v", r)
		}
	})
}

// TestURLOnEngine: which engine answers at a URL is found out. Podman's is preferred where both
// would do.
func TestURLOnEngine(t *testing.T) {
	needTime(t)
	name, socket := anyEngine(t), engineSocket(t)
	r := doctorSays(t, "MCP_BRIDGE_RUNTIME=unix://"+socket)
	if !r.Works || !find(r.Rows, row{"engine " + name, fine, socket, "chosen", ""}) {
		t.Errorf("got %+v", r)
	}
	if name == "docker" && !find(r.Rows, row{"engine podman", toKnow, socket, "passed over", ""}) {
		t.Errorf("nothing is said of podman: %+v", r)
	}
}

// doctorSays is the doctor's document; more are variables.
func doctorSays(t *testing.T, more ...string) report {
	t.Helper()
	cmd := command(t, nil, "doctor", "--json")
	cmd.Env = append(cmd.Env, more...)
	cmd.Stderr = logFile(t)
	out, err := cmd.Output()
	var r report
	if jerr := json.Unmarshal(out, &r); jerr != nil {
		t.Fatalf("%v: %s", jerr, out)
	}
	if r.Works != (err == nil) {
		t.Errorf("works is %v, and it ended with %v", r.Works, err)
	}
	return r
}

// TestDetection: nothing names an engine, and the doctor says what became of each.
func TestDetection(t *testing.T) {
	needEngine(t)
	if os.Getenv("CONTAINER_HOST") != "" {
		t.Skip("CONTAINER_HOST names an engine, so that there is nothing to detect")
	}
	r := doctorSays(t, "MCP_BRIDGE_RUNTIME=", "DOCKER_HOST=unix:///nonexistent/docker.sock")
	if !r.Works || !find(r.Rows, row{"engine podman", fine, "podman ", "chosen", ""}) ||
		!find(r.Rows, row{"engine docker", toKnow, "/nonexistent/docker.sock", "passed over", ""}) {
		t.Errorf("got %+v", r)
	}
}

// deadOwner is a process that was there.
func deadOwner(t *testing.T) runtime.Owner {
	t.Helper()
	o := runtime.Self()
	cmd := exec.Command("true")
	must(t, cmd.Run())
	o.PID, o.Started = cmd.Process.Pid, "1"
	return o
}

// container makes one by hand, as the owner's.
func container(t *testing.T, o runtime.Owner) (id string) {
	t.Helper()
	args := []string{"create", "--network", "none", "--name", o.NewName()}
	for k, v := range o.Labels() {
		args = append(args, "--label", k+"="+v)
	}
	cli := anyEngine(t)
	out, err := exec.Command(cli, append(args, "localhost/mcp-bridge/python:latest", "true")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s create: %v: %s", cli, err, out)
	}
	lines := strings.Fields(string(out))
	id = lines[len(lines)-1]
	t.Cleanup(func() { exec.Command(cli, "rm", "-f", id).Run() })
	return id
}

func exists(t *testing.T, id string) bool {
	t.Helper()
	out, err := exec.Command(anyEngine(t), "ps", "-aq", "--no-trunc", "--filter", "id="+id).Output()
	if err != nil {
		t.Fatalf("listing containers: %v", err)
	}
	return strings.Contains(string(out), id)
}

// TestReapOnEngine: by hand and at a bridge's first call, the containers of dead owners go, a
// reused pid's too, and those of living ones stay.
func TestReapOnEngine(t *testing.T) {
	needTime(t)
	anyEngine(t)
	reused, foreign := runtime.Self(), deadOwner(t)
	reused.Started = "1"
	foreign.BootID = "another machine"
	for _, how := range []string{"doctor --reap", "a call"} {
		t.Run(how, func(t *testing.T) {
			gone := []string{container(t, deadOwner(t)), container(t, reused)}
			stays := []string{container(t, runtime.Self()), container(t, foreign)}
			if how == "a call" {
				if got := serve(t, command(t, nil)).python("print(1)",
					map[string]any{"servers": []string{}}); got.Text != "1\n" {
					t.Errorf("got %+v", got)
				}
			} else {
				out, err := command(t, nil, "doctor", "--reap").Output()
				must(t, err)
				for _, id := range gone {
					if !strings.Contains(string(out), id[:12]) {
						t.Errorf("%s is not in %s", id, out)
					}
				}
				if !strings.Contains(string(out), "not running, owner pid") ||
					strings.Contains(string(out), stays[0][:12]) {
					t.Errorf("got %s", out)
				}
			}
			for _, id := range gone { // a call doesn't wait for that
				withinTime(t, 30*time.Second, id+" is gone", func() bool { return !exists(t, id) })
			}
			for _, id := range stays {
				if !exists(t, id) {
					t.Errorf("%s of a living owner is gone", id)
				}
			}
		})
	}
}

// TestTwoBridges: one starts, calls, reaps and ends while the other is in the middle of a run,
// which notices nothing.
func TestTwoBridges(t *testing.T) {
	anyEngine(t)
	first := serve(t, command(t, nil))
	id, answer := first.startLong()
	second := serve(t, command(t, nil))
	second.works()
	out, err := command(t, nil, "doctor", "--reap").CombinedOutput()
	if err != nil || strings.Contains(string(out), fmt.Sprint(first.cmd.Process.Pid)) {
		t.Errorf("got %v: %s", err, out)
	}
	if n := len(containersOf(t, []int{first.cmd.Process.Pid})); n != 1 && n != 1+keptReady {
		t.Errorf("%d containers of the first bridge are there, want 1, and perhaps a standby", n)
	}
	select {
	case m := <-answer:
		t.Errorf("the first bridge's run ended: %s", m.Result)
	default:
	}
	first.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled",
		"params": map[string]any{"requestId": id}})
	first.works()
}

// TestGoneAndBackOnEngine: an engine that goes away, in the middle of a run and between calls,
// fails them with the next step, and soon; it works again when it is back, and the bridge is the
// same all the while.
func TestGoneAndBackOnEngine(t *testing.T) {
	needTime(t)
	anyEngine(t)
	socket := filepath.Join(t.TempDir(), "engine.sock")
	door := openDoor(t, socket, engineSocket(t))
	cmd := command(t, nil)
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_RUNTIME=unix://"+socket)
	c := serve(t, cmd)
	for round := range 2 {
		_, answer := c.startLong()
		begin := time.Now()
		door.shut()
		got := parseAnswer(t, <-answer)
		if !got.IsError || !strings.Contains(got.Text, "up\n") || !strings.Contains(got.Text, "Next: ") {
			t.Errorf("round %d: in the middle of a run: got %+v", round, got)
		}
		t.Logf("the run ended after %v: %s", time.Since(begin).Round(time.Millisecond), got.Text)
		for range 3 {
			begin := time.Now()
			got := c.python("print('gone')", map[string]any{"servers": []string{}})
			if !got.IsError || !strings.Contains(got.Text, socket) || !strings.Contains(got.Text, "Next: ") ||
				time.Since(begin) > 5*time.Second {
				t.Errorf("round %d: got %+v after %v", round, got, time.Since(begin))
			}
		}
		door = openDoor(t, socket, door.to)
		c.works()
	}
	within(t, "no container is left but a standby", func() bool {
		return len(containersOf(t,
			[]int{c.cmd.Process.Pid})) <= keptReady
	})
}

// engineSocket is where the engine listens; it is skipped where that is no unix socket.
func engineSocket(t *testing.T) string {
	t.Helper()
	host := os.Getenv("CONTAINER_HOST")
	if anyEngine(t) == "docker" {
		host = os.Getenv("DOCKER_HOST")
	}
	path, ok := strings.CutPrefix(host, "unix://")
	switch {
	case ok:
		return path
	case host != "" || anyEngine(t) != "podman":
		t.Skip("the engine listens at no unix socket")
	}
	path = filepath.Join(t.TempDir(), "podman.sock")
	service := exec.Command("podman", "system", "service", "--time=0", "unix://"+path)
	must(t, service.Start())
	t.Cleanup(func() {
		service.Process.Kill()
		service.Wait()
	})
	within(t, "the service listens", func() bool {
		return exec.Command("podman", "--url", "unix://"+path,
			"version").Run() == nil
	})
	return path
}

// door is a socket before the engine's own: shut, the engine is gone for a bridge that comes this
// way.
type door struct {
	to string
	l  net.Listener

	mu    sync.Mutex
	conns []net.Conn
	wg    sync.WaitGroup
}

func openDoor(t *testing.T, path, to string) *door {
	t.Helper()
	l, err := net.Listen("unix", path)
	must(t, err)
	d := &door{to: to, l: l}
	d.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", to)
			if err != nil {
				in.Close()
				continue
			}
			d.mu.Lock()
			d.conns = append(d.conns, in, out)
			d.mu.Unlock()
			d.pass(in, out)
			d.pass(out, in)
		}
	})
	t.Cleanup(d.shut)
	return d
}

// pass copies one direction, and its end.
func (d *door) pass(to, from net.Conn) {
	d.wg.Go(func() {
		io.Copy(to, from)
		to.(*net.UnixConn).CloseWrite()
	})
}

// shut may be called more than once. The socket goes with its listener.
func (d *door) shut() {
	d.l.Close()
	d.mu.Lock()
	for _, c := range d.conns {
		c.Close()
	}
	d.mu.Unlock()
	d.wg.Wait()
}

// keptReady is how many containers a bridge keeps ready that was told nothing else.
const keptReady = 1

// within waits for something for at most twenty seconds.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	withinTime(t, 20*time.Second, what, is)
}

func withinTime(t *testing.T, most time.Duration, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !is(); <-tick.C {
		if time.Since(begin) > most {
			t.Fatalf("after %v it is still not so that %s", time.Since(begin), what)
		}
	}
}

// TestPinned: an image is used by its id and by its digest, and no other one by a digest that it
// hasn't got.
func TestPinned(t *testing.T) {
	needEngine(t)
	out, err := exec.Command("podman", "image", "inspect", "--format", "{{.Id}} {{index .RepoDigests 0}}",
		"localhost/mcp-bridge/python:latest").Output()
	must(t, err)
	id, digest, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	for _, ref := range []string{"sha256:" + id, digest} {
		if r := doctorSays(t, "MCP_BRIDGE_IMAGE="+ref, "MCP_BRIDGE_PULL=never"); !r.Works ||
			!find(r.Rows, row{"image", fine, ref, "", ""}) {
			t.Errorf("%s: got %+v", ref, r)
		}
	}
	name, _, _ := strings.Cut(digest, "@")
	wrong := name + "@sha256:" + strings.Repeat("0", 64)
	if r := doctorSays(t, "MCP_BRIDGE_IMAGE="+wrong, "MCP_BRIDGE_PULL=never"); r.Works ||
		!find(r.Rows, row{"image", broken, "it is not here, and no registry has it", "", "image build"}) {
		t.Errorf("got %+v", r)
	}
}

// TestOCIRuntimeOnEngine: one that the engine doesn't have is told before anything runs.
func TestOCIRuntimeOnEngine(t *testing.T) {
	name := anyEngine(t)
	if os.Getenv("MCP_BRIDGE_OCI_RUNTIME") != "" {
		t.Skip("MCP_BRIDGE_OCI_RUNTIME chooses the engine's service, whose runtime can't be another one's " +
			"for a test")
	}
	r := doctorSays(t, "MCP_BRIDGE_OCI_RUNTIME=nonesuch")
	if r.Works || !find(r.Rows, row{"engine " + name, broken, "nonesuch", "", ""}) {
		t.Errorf("got %+v", r)
	}
}
