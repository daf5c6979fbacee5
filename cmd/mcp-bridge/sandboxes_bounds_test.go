package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// leastMemory makes calls in a sandbox, and returns the least memory of a few looks that the bridge
// has had during the last of them, and the processes of the sandbox, in KiB.
func (c *client) leastMemory(in map[string]any, calls int) (bridge, guest int) {
	c.t.Helper()
	const look = "of = lambda p: next(l for l in open(f'/proc/{p}/status') if l[:6] == 'VmRSS:')\n" +
		"print(*(of(p).split()[1] for p in (1, 'self')))"
	var bridges, guests []int
	for i := range calls {
		code := "n = globals().get('n', 0) + 1; print(n)"
		if i >= calls-20 {
			code = look
		}
		got := c.python(code, in)
		text, line, _ := strings.Cut(got.Text, "\n")
		if got.IsError || !strings.HasPrefix(line, fmt.Sprintf("[sandbox %s, call ", in["sandbox"])) {
			c.t.Fatalf("call %d: %s", i, got.Text)
		}
		if code == look {
			sum := 0
			for field := range strings.FieldsSeq(text) {
				kib, err := strconv.Atoi(field)
				must(c.t, err)
				sum += kib
			}
			guests = append(guests, sum)
			bridges = append(bridges, ofStatus(c.t, c.cmd.Process.Pid, "VmRSS"))
		}
	}
	return slices.Min(bridges), slices.Min(guests)
}

// ofStatus is a number that the kernel tells of a process.
func ofStatus(t *testing.T, pid int, name string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name+":" {
			n, err := strconv.Atoi(f[1])
			must(t, err)
			return n
		}
	}
	t.Fatalf("the kernel doesn't tell %s", name)
	return 0
}

// plain has cmd be the program of make build where this one has the race detector, which keeps
// memory of its own.
func plain(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if !raceDetector {
		return cmd
	}
	built := os.Getenv("MCP_BRIDGE_TEST_BUILT")
	if built == "" {
		t.Skip("the race detector keeps memory: set MCP_BRIDGE_TEST_BUILT to a program without it")
	}
	cmd.Path = built
	return cmd
}

// TestNothingGrowsInASandbox: ten thousand calls make neither the bridge nor the guest larger.
func TestNothingGrowsInASandbox(t *testing.T) {
	needEngine(t)
	if testing.Short() {
		t.Skip("it makes twelve thousand calls")
	}
	c := serve(t, with(plain(t, command(t, nil)), "MCP_BRIDGE_LOG_LEVEL=error"))
	in := map[string]any{"sandbox": c.begin("pass"), "servers": []string{}}
	bridge, guest := c.leastMemory(in, 2000)
	bridgeThen, guestThen := c.leastMemory(in, 10_000)
	t.Logf("the bridge: %d KiB and %d KiB; the guest: %d KiB and %d KiB", bridge, bridgeThen, guest, guestThen)
	if more := bridgeThen - bridge; more > 2<<10 {
		t.Errorf("the bridge takes %d KiB more", more)
	}
	if more := guestThen - guest; more > 2<<10 {
		t.Errorf("the guest takes %d KiB more", more)
	}
}

// churn begins sandboxes and ends them in several ways, and returns when no container is left.
func (s *scene) churn(c *client, n int) {
	for i := range n {
		id := c.begin("x = 1")
		in := map[string]any{"sandbox": id, "servers": []string{}}
		switch i % 4 {
		case 0:
			c.python("import os; os._exit(1)", in)
		case 1: // it ends while a call is under way
			_, answer := c.startLong(in)
			c.tool("sandbox_kill", map[string]any{"sandbox_id": id})
			<-answer
		case 2: // their containers are killed
			kill := append([]string{"kill"}, s.containers()...)
			if out, err := exec.Command("podman", kill...).CombinedOutput(); err != nil {
				s.t.Errorf("podman kill: %v: %s", err, out)
			}
			within(s.t, "the bridge knows of it", func() bool { // until then they count
				return len(c.tool("sandbox_list", nil)["sandboxes"].([]any)) == 0
			})
		} // those that are left make room for others
	}
	for _, left := range c.tool("sandbox_list", nil)["sandboxes"].([]any) {
		c.tool("sandbox_kill", map[string]any{"sandbox_id": left.(map[string]any)["id"]})
	}
	within(s.t, "no container is left", func() bool { return len(s.containers()) == 0 })
	c.works()
	within(s.t, "no container is left", func() bool { return len(s.containers()) == 0 })
}

// TestChurnedSandboxes begins sandboxes and ends them in several ways: nothing of them is left, in
// the engine or in the bridge. With MCP_BRIDGE_TEST_LONG=1 they are a thousand, of which the second
// half may not leave a megabyte.
func TestChurnedSandboxes(t *testing.T) {
	needEngine(t)
	if testing.Short() {
		t.Skip("it starts a hundred containers")
	}
	vars := []string{
		"MCP_BRIDGE_TOOLS=all",
		"MCP_BRIDGE_LOG_LEVEL=error",
		"MCP_BRIDGE_STANDBY=0",
		"MCP_BRIDGE_SANDBOXES=4",
	}
	first, second, most := 20, 60, 4<<10 // a collection may come later
	if os.Getenv("MCP_BRIDGE_TEST_LONG") != "" {
		first, second, most = 500, 500, 1<<10
	}
	t.Run("memory", func(t *testing.T) {
		c := serve(t, with(plain(t, command(t, nil)), vars...))
		s := &scene{t: t, bridge: c.cmd.Process.Pid}
		s.churn(c, first)
		before := ofStatus(t, s.bridge, "VmRSS")
		s.churn(c, second)
		after := ofStatus(t, s.bridge, "VmRSS")
		t.Logf("%d KiB after %d, %d KiB after %d more", before, first, after, second)
		if after > before+most {
			t.Errorf("%d KiB more", after-before)
		}
	})
	t.Run("descriptors", func(t *testing.T) {
		c := serve(t, with(command(t, nil), append(vars, asOpen+"=1")...)) // others let no one look at them
		s := &scene{t: t, bridge: c.cmd.Process.Pid}
		s.churn(c, 12)
		before := settled(t, s.bridge, 100)
		s.churn(c, second/3)
		t.Logf("%d descriptors before, %d after %d more", before, settled(t, s.bridge, before), second/3)
	})
}

// settled waits until a bridge whose sandboxes have ended has at most a number of descriptors, and
// keeps no connection to the engine for the next request, as it does for half a minute. It returns
// how many descriptors there are.
func settled(t *testing.T, pid, most int) (all int) {
	t.Helper()
	const stay = 2 // sockets: one for the engine's events, and one where mcp-bridge sandbox connects
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	withinTime(t, time.Minute, fmt.Sprintf("%d descriptors, %d sockets are left", most, stay), func() bool {
		open, err := os.ReadDir(dir)
		must(t, err)
		sockets := 0
		for _, fd := range open {
			if what, _ := os.Readlink(dir + fd.Name()); strings.HasPrefix(what, "socket:") {
				sockets++
			}
		}
		all = len(open)
		return sockets <= stay && all <= most
	})
	return all
}

// traces has the code of a sandbox leave what could be found elsewhere.
const traces = `
import os, socket, subprocess, sys
for directory in ('/workspace', '/tmp', '/ipc', '/dev/shm'):
    try:
        open(f'{directory}/TRACE', 'w').write('mine')
    except OSError:
        pass
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)  # TRACE'])
hidden = socket.socket(socket.AF_UNIX)
hidden.bind('\0TRACE')
hidden.listen()
door = socket.socket()
door.bind(('127.0.0.1', 4711))
door.listen()
os.environ['TRACE'] = 'mine'
TRACE = 'mine'
`

// looking finds them, and tries to end every process that it can name.
const looking = `
import ctypes, glob, os, signal, socket
found = [path for path in ('/workspace/TRACE', '/tmp/TRACE', '/ipc/TRACE', '/dev/shm/TRACE') if os.path.exists(path)]
own = {os.getpid(), os.getppid(), 1}
for path in glob.glob('/proc/[0-9]*/cmdline'):
    try:
        if b'TRACE' in open(path, 'rb').read().replace(b'found', b''):
            found += [path] if int(path.split('/')[2]) not in own else []
    except OSError:
        pass
for kind, address in ((socket.AF_UNIX, '\0TRACE'), (socket.AF_INET, ('127.0.0.1', 4711))):
    try:
        socket.socket(kind).connect(address)
        found.append(str(address))
    except OSError:
        pass
found += ['environ'] * ('TRACE' in os.environ) + ['globals'] * ('TRACE' in globals())
found += glob.glob('/proc/sysvipc/x')
for pid in range(2, 70_000):
    if pid not in own:
        try:
            os.kill(pid, signal.SIGCONT)
        except OSError:
            continue
        if b'TRACE' in open(f'/proc/{pid}/cmdline', 'rb').read():
            found.append(pid)
print(found)
`

// TestSandboxesApart: one sandbox can't find files, variables, processes or sockets of another,
// while those run, and no other client can use its id.
func TestSandboxesApart(t *testing.T) {
	needEngine(t)
	b := with(command(t, nil), "MCP_BRIDGE_TOOLS=all")
	c := serve(t, b)
	mine, _ := c.tool("sandbox_create", map[string]any{"keep_running": true})["id"].(string)
	in := map[string]any{"sandbox": mine, "timeout": 60}
	if got := c.python(traces, in); got.IsError {
		t.Fatal(got.Text)
	}
	if got := c.python(looking, in); !strings.Contains(got.Text, "/workspace/TRACE") ||
		!strings.Contains(got.Text, "/proc/") || !strings.Contains(got.Text, "4711") ||
		!strings.Contains(got.Text, "globals") {
		t.Errorf("it finds of its own: %s", got.Text)
	}
	other, _ := c.tool("sandbox_create", map[string]any{})["id"].(string)
	for _, where := range []map[string]any{{"sandbox": other, "timeout": 60}, {"timeout": 60}} {
		if got := c.python(looking, where); !strings.HasPrefix(got.Text, "[]\n") {
			t.Errorf("%v: another finds %s", where, got.Text)
		}
	}
	if got := c.python("print(TRACE, child.poll())", in); !strings.HasPrefix(got.Text, "mine None\n") {
		t.Errorf("afterwards: %s", got.Text)
	}
	stranger := serve(t, with(command(t, nil), "MCP_BRIDGE_TOOLS=all"))
	got := stranger.python("print(TRACE)", map[string]any{"sandbox": mine})
	if !got.IsError || !strings.Contains(got.Text, "you have no sandbox") {
		t.Errorf("another connection: %s", got.Text)
	}
	read := stranger.tool("sandbox_files_read", map[string]any{"sandbox_id": mine, "path": "TRACE"})
	if read["error"] == nil {
		t.Errorf("another connection: %v", read)
	}
}
