package main

import (
	"bufio"
	"bytes"
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

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// stubborn is a server that ignores the end of its input and SIGTERM, and so does a child of its
// own. Both carry a mark.
const stubborn = pythonServer + `
import signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) == 3:  # the server; its child has one argument more
    child = [sys.executable, "-c", open(sys.argv[1]).read(), sys.argv[1], sys.argv[2], "child"]
    subprocess.Popen(child, stdout=subprocess.DEVNULL)
    serve("poke", call=lambda: {"content": [{"type": "text", "text": "poked"}]})
while True:
    time.sleep(1)
`

// clientMain is an MCP client in a process of its own, to be killed: it starts the bridge as its
// child, calls run_python and says when the code is running and what the bridge's process is.
func clientMain() int {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv,
			asClient)
	}), asMain+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		return 1
	}
	fmt.Println("bridge", cmd.Process.Pid)
	const code = `print(mcp_stubborn.poke(), 'at work', flush=True)\nimport time\nwhile True: time.sleep(0.1)`
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_python",`+
		`"arguments":{"code":"%s","servers":["stubborn"],"timeout":100},"_meta":{"progressToken":1}}}`+"\n", code)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if bytes.Contains(lines.Bytes(), []byte("at work")) {
			fmt.Println("running")
		}
	}
	cmd.Wait() //nolint:errcheck // only its end matters
	return 0
}

// scene is a client, its bridge, their server and their container, in the middle of a run.
type scene struct {
	t        *testing.T
	client   *exec.Cmd
	bridge   int // pid
	watchdog int // its watchdog's
	mark     string
	before   []string // runtime directories that were there before
}

func stage(t *testing.T) *scene {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "stubborn.py")
	must(t, os.WriteFile(script, []byte(stubborn), 0o600))
	s := &scene{t: t, mark: "mark-" + filepath.Base(filepath.Dir(dir)) + filepath.Base(dir),
		before: runtimeDirs(t)}
	s.client = exec.Command(self(t))
	s.client.Env = append(os.Environ(), asClient+"=1", "XDG_STATE_HOME="+t.TempDir(),
		"MCP_BRIDGE_CONFIG="+configure(t, map[string]entry{
			"stubborn": {Command: "python3", Args: []string{"-c", stubborn, script, s.mark}},
		}))
	var log bytes.Buffer
	s.client.Stderr = &log
	out, err := s.client.StdoutPipe()
	must(t, err)
	must(t, s.client.Start())
	lines := bufio.NewScanner(out)
	running := false
	for !running && lines.Scan() {
		pid, ok := strings.CutPrefix(lines.Text(), "bridge ")
		if ok {
			s.bridge, _ = strconv.Atoi(pid)
		}
		running = lines.Text() == "running"
	}
	if !running {
		s.client.Process.Kill()
		t.Fatalf("the run did not begin: %s", log.String())
	}
	t.Cleanup(func() {
		for _, pid := range s.marked() {
			_ = sendSignal(pid, syscall.SIGKILL)
		}
	})
	s.watchdog = watchdogOf(t, s.bridge)
	if n := len(s.marked()); n != 2 {
		t.Errorf("%d processes of the server run, want 2", n)
	}
	if n := len(s.containers()); n != 1 && n != 1+keptReady {
		t.Errorf("%d containers run, want 1, and perhaps a standby", n)
	}
	go func() { // so that the client is reaped whatever ended it
		for lines.Scan() { //nolint:revive // to its end
		}
		s.client.Wait()
	}()
	return s
}

// marked are the processes of the server.
func (s *scene) marked() []int { return processes(s.mark) }

// processes are those whose command line has a text in it.
func processes(text string) []int {
	var found []int
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		b, err := os.ReadFile(name)
		if err == nil && bytes.Contains(b, []byte(text)) {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			if pid != os.Getpid() {
				found = append(found, pid)
			}
		}
	}
	return found
}

// containers are those of this bridge that podman still knows.
func (s *scene) containers() []string {
	out, err := exec.Command("podman", "ps", "-aq", "--filter",
		fmt.Sprintf("label=%s=%d", runtime.LabelPID, s.bridge)).Output()
	if err != nil {
		s.t.Errorf("podman ps: %v", err)
	}
	return strings.Fields(string(out))
}

// servicesOf are the API services of one bridge, whose number is in the name of their directory.
func servicesOf(t *testing.T, bridge int) (pids []int) {
	t.Helper()
	for _, d := range runtimeDirs(t) {
		if strings.HasPrefix(filepath.Base(d), fmt.Sprintf("mcp-bridge-%d-", bridge)) {
			pids = append(pids, processes(d+"/podman.sock")...)
		}
	}
	return pids
}

func runtimeDirs(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "mcp-bridge-*"))
	must(t, err)
	return dirs
}

// anothers says whether a directory belongs to another bridge or watchdog, which lives: what they
// do is their own affair.
func (s *scene) anothers(dir string) bool {
	self := runtime.Self()
	o, ok := runtime.OwnerNamed(filepath.Base(dir), self)
	return ok && !o.Orphaned(self) && o.PID != s.bridge && o.PID != s.watchdog
}

// left is what is still there of the scene.
func (s *scene) left() []string {
	var left []string
	for _, pid := range s.marked() {
		left = append(left, fmt.Sprintf("server process %d", pid))
	}
	for _, c := range s.containers() {
		left = append(left, "container "+c)
	}
	left = append(left, monitorsOf([]int{s.bridge})...)
	for _, d := range runtimeDirs(s.t) {
		if slices.Contains(s.before, d) || s.anothers(d) {
			continue
		}
		left = append(left, "directory "+d)
		for _, pid := range processes(d + "/podman.sock") {
			left = append(left, fmt.Sprintf("API service %d", pid))
		}
	}
	if err := sendSignal(s.bridge, 0); err == nil {
		left = append(left, fmt.Sprintf("bridge %d", s.bridge))
	}
	return left
}

// cleared waits until nothing is left.
func (s *scene) cleared() {
	s.t.Helper()
	allGone(s.t, s.left)
}

// allGone waits until nothing is left, for at most thirty seconds.
func allGone(t *testing.T, left func() []string) {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for still := left(); len(still) > 0; still = left() {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("after %v there is still: %s", time.Since(begin), strings.Join(still, ", "))
		}
		<-tick.C
	}
	t.Logf("all gone after %v", time.Since(begin).Round(10*time.Millisecond))
}
