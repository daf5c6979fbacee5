package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// killable is a client in a process of its own: it starts the bridge, does the steps that follow,
// once or until it is killed, and tells of it on lines: the bridge's process, the sandbox's first
// result, and the last.
const killable = `
import json, re, subprocess, sys, time
bridge = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print("bridge", bridge.pid, flush=True)
number = 0
def request(method, **params):
    global number
    number += 1
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    bridge.stdin.write(line.encode() + b"\n")
    bridge.stdin.flush()
    for line in bridge.stdout:
        got = json.loads(line)
        if got.get("id") == number:
            return got["result"]
    sys.exit()  # the bridge was killed
def call(tool, **arguments):
    return request("tools/call", name=tool, arguments=arguments)
def python(code, sandbox):
    return call("run_python", code=code, sandbox=sandbox, servers=[], timeout=100)["content"][0]["text"]
request("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "0"})
bridge.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
for _ in range(5):  # ten engines that start at once may keep one of them waiting for too long
    begun = python("x = 1", "new")
    if "[sandbox " in begun:
        break
    print(begun, file=sys.stderr)
id = re.search(r"\[sandbox (\w+): new", begun)[1]
print("first", flush=True)
`

// killableRuns has it do them.
const killableRuns = `
steps()
while sys.argv[1] == "again":
    steps()
print("last", flush=True)
bridge.wait()
`

// calls are those of a sandbox that are killed: some that end well, one that is taken back, and
// those of the tools.
const calls = `
def steps():
    python("import time; time.sleep(0.1); x = 2", id)
    call("sandbox_exec", sandbox_id=id, command="echo a > f; sleep 0.1; cat f")
    call("sandbox_files_write", sandbox_id=id, path="/workspace/g", content="g" * 1_000_000)
    python("import os; os._exit(1)", id)
    call("sandbox_undo", sandbox_id=id)
    python("import time; print(x); time.sleep(0.1)", id)
`

// sleeps has a sandbox be saved and woken again and again. Each time its file is another, whole.
const sleeps = `
def steps():
    for n in range(4):
        call("sandbox_files_write", sandbox_id=id, path="/workspace/f", content=str(n) * 300_000)
        while call("sandbox_info", sandbox_id=id)["structuredContent"]["status"] != "hibernated":
            time.sleep(0.02)
`

// A victim is a client and its bridge, one of which is to be killed.
type victim struct {
	client *exec.Cmd
	bridge int                      // its process
	steps  map[string]chan struct{} // closed when the client has told of it
	over   chan struct{}            // closed when it has ended
	last   string                   // step
}

// stalk starts a client that does the steps with a bridge, once or again and again, and returns
// when that is a process.
func stalk(t *testing.T, steps, often string, b *exec.Cmd) *victim {
	t.Helper()
	v := &victim{client: exec.Command("python3", "-c", killable+steps+killableRuns, often, b.Path),
		over:  make(chan struct{}),
		steps: map[string]chan struct{}{"first": make(chan struct{}), "last": make(chan struct{})}}
	v.client.Env, v.client.Stderr = b.Env, logFile(t)
	out, err := v.client.StdoutPipe()
	must(t, err)
	must(t, v.client.Start())
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		v.bridge, _ = strconv.Atoi(strings.TrimPrefix(lines.Text(), "bridge "))
	}
	if v.bridge == 0 {
		t.Errorf("the client hasn't started a bridge: %q", lines.Text())
	}
	go func() {
		defer close(v.over)
		for lines.Scan() {
			v.last = lines.Text()
			if step := v.steps[v.last]; step != nil {
				close(step)
			}
		}
	}()
	t.Cleanup(func() {
		if v.client.ProcessState == nil { // a test that failed has left it
			v.killed(t, true)
			within(t, "its bridge has ended too", func() bool { return sendSignal(v.bridge, 0) != nil })
		}
	})
	return v
}

// reached waits for a step, and reports whether it came.
func (v *victim) reached(step string) bool {
	select {
	case <-v.steps[step]:
		return true
	case <-v.over:
		return false
	}
}

// killed kills the client or its bridge, and returns the last step.
func (v *victim) killed(t *testing.T, client bool) string {
	err := v.client.Process.Kill
	if !client {
		err = func() error { return sendSignal(v.bridge, syscall.SIGKILL) }
	}
	if err := err(); err != nil {
		t.Errorf("killing: %v", err)
	}
	<-v.over
	v.client.Wait() //nolint:errcheck // it was killed, or its bridge
	return v.last
}

// hunt kills ten clients or their bridges a round, in turns, half of them at any moment of all that
// they do, the others, which do it again and again, at any after the sandbox's first result. It
// returns how many were between that and the last. With MCP_BRIDGE_TEST_LONG=1 those others must
// have been. Nothing that lives may be left.
func hunt(t *testing.T, steps string, rounds int, vars ...string) (between int) {
	t.Helper()
	const atATime = 10
	judge := t.Logf // ten engines that start beside much else may keep a client waiting until it gives up
	if os.Getenv("MCP_BRIDGE_TEST_LONG") != "" {
		judge = t.Errorf
	}
	first, whole := livesOf(t, steps, atATime, vars...)
	for round := range rounds {
		before, mark := runtimeDirs(t), fmt.Sprintf("%s=%d", markVar, rand.Uint64())
		var pids []int
		var killed sync.WaitGroup
		last := make([]string, atATime)
		for i := range atATime {
			often, span := "once", whole
			if i%4 > 1 {
				often, span = "again", whole-first
			}
			v := stalk(t, steps, often, with(command(t, nil), append(vars, mark)...))
			pids = append(pids, v.bridge)
			killed.Go(func() {
				if often == "again" {
					v.reached("first")
				}
				<-time.After(time.Duration(rand.Int64N(int64(span))))
				select {
				case <-v.over:
					judge("a client has ended before it was killed")
				default:
				}
				last[i] = v.killed(t, i%2 == 0)
			})
		}
		killed.Wait()
		for i, step := range last {
			if step == "first" {
				between++
			} else if i%4 > 1 {
				judge("one that begins again was killed in its step %q", step)
			}
		}
		allGone(t, func() (left []string) {
			for _, pid := range pids {
				if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); len(line) > 0 {
					left = append(left, fmt.Sprintf("bridge %d", pid))
				}
			}
			return left
		})
		noneLeft(t, pids, before, mark)
		t.Logf("round %d: %q", round, last)
	}
	return between
}

// livesOf returns how long it takes n clients, started at once, until the sandboxes' first results,
// and until the last.
func livesOf(t *testing.T, steps string, n int, vars ...string) (first, whole time.Duration) {
	t.Helper()
	began := time.Now()
	var all []*victim
	for range n {
		all = append(all, stalk(t, steps, "once", with(command(t, nil), vars...)))
	}
	for _, step := range []string{"first", "last"} {
		for _, v := range all {
			if !v.reached(step) {
				t.Fatalf("a client that wasn't killed has ended before its %s result", step)
			}
		}
		first, whole = whole, time.Since(began)
	}
	for _, v := range all {
		v.killed(t, true)
	}
	return first, whole
}

// TestKilledInSandboxes kills forty clients or their bridges at random moments of calls in
// sandboxes, and a hundred with MCP_BRIDGE_TEST_LONG=1: nothing is left of any of them. A tenth at
// least must have been killed between the sandbox's first result and the last.
func TestKilledInSandboxes(t *testing.T) {
	needTime(t)
	needEngine(t)
	rounds := killRounds()
	between := hunt(t, calls, rounds, "MCP_BRIDGE_TOOLS=all")
	t.Logf("of %d, %d were killed between the sandbox's first result and the last", rounds*10, between)
	if between < rounds {
		t.Errorf("only %d of %d were killed in a sandbox", between, rounds*10)
	}
}

// TestKilledWhileHibernating does the same while sandboxes are saved and woken. The next bridge
// finds each file as it was once, whole, and nothing else is left.
func TestKilledWhileHibernating(t *testing.T) {
	needEngine(t)
	rounds := 1
	switch {
	case testing.Short():
		t.Skip("it waits for sandboxes that are idle")
	case os.Getenv("MCP_BRIDGE_TEST_LONG") != "":
		rounds = 10
	}
	dir := filepath.Join(t.TempDir(), "saved")
	vars := []string{"MCP_BRIDGE_TOOLS=all", "MCP_BRIDGE_HIBERNATE=" + dir, "MCP_BRIDGE_SANDBOX_IDLE=1",
		"XDG_STATE_HOME=" + t.TempDir()}
	woken := 0
	for range rounds {
		between := hunt(t, sleeps, 1, vars...)
		c := serve(t, with(command(t, nil), vars...))
		if left, _ := filepath.Glob(dir + "/.*"); len(left) != 0 {
			t.Errorf("the next bridge leaves what was not finished: %q", left)
		}
		for _, s := range c.tool("sandbox_list", nil)["sandboxes"].([]any) {
			id := s.(map[string]any)["id"]
			text, _ := c.tool("sandbox_files_read", map[string]any{"sandbox_id": id, "path": "f"})["content"].(string)
			if len(text) != 0 && (len(text) != 300_000 || strings.Trim(text, text[:1]) != "") {
				t.Errorf("sandbox %v has %d bytes, %.20q…", id, len(text), text)
			}
			if len(text) > 0 {
				woken++
			}
			c.tool("sandbox_kill", map[string]any{"sandbox_id": id})
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		t.Logf("%d were killed between their first result and the last; %d files were found so far", between, woken)
	}
	if woken < rounds {
		t.Errorf("only %d sandboxes had been saved", woken)
	}
}
