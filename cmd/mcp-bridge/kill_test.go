package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestKilled kills the client and the bridge, ten times each, in the middle of a run: nothing may
// be left.
func TestKilled(t *testing.T) {
	needEngine(t)
	for _, tt := range []struct {
		name string
		kill func(*scene) error
	}{
		{"client", func(s *scene) error { return s.client.Process.Kill() }},
		{"bridge", func(s *scene) error { return sendSignal(s.bridge, syscall.SIGKILL) }},
		{"terminated bridge", func(s *scene) error { return sendSignal(s.bridge, syscall.SIGTERM) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			times := 10
			if tt.name == "terminated bridge" || testing.Short() {
				times = 2
			}
			for range times {
				s := stage(t)
				must(t, tt.kill(s))
				s.cleared()
			}
		})
	}
}

// killRounds returns how often ten are killed at random moments.
func killRounds() int {
	if os.Getenv("MCP_BRIDGE_TEST_LONG") != "" {
		return 10
	}
	return 4
}

// TestKilledAtRandomMoments kills forty bridges, ten at a time, at moments from before they have
// read their first message until after their first call has been answered: nothing may be left of
// any of them. With MCP_BRIDGE_TEST_LONG=1 they are a hundred.
func TestKilledAtRandomMoments(t *testing.T) {
	needTime(t)
	needEngine(t)
	rounds, atATime := killRounds(), 10
	life := lifeOfACall(t, atATime)
	life += life / 4
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	answered := 0
	for round := range rounds {
		before, mark := runtimeDirs(t), fmt.Sprintf("%s=%d", markVar, r.Uint64())
		var pids []int
		var killed sync.WaitGroup
		outs := make([]bytes.Buffer, atATime)
		for i := range atATime {
			moment := time.Duration(r.Int64N(int64(life)))
			cmd := command(t, nil)
			cmd.Env = append(cmd.Env, mark)
			cmd.Stdout = &outs[i]
			in, w := io.Pipe() // which stays open, as a client's does
			cmd.Stdin = in
			must(t, cmd.Start())
			go io.WriteString(w, oneCall) // ends with the read side, at the latest when the bridge is gone
			pids = append(pids, cmd.Process.Pid)
			killed.Go(func() {
				<-time.After(moment)
				if err := cmd.Process.Kill(); err != nil {
					t.Errorf("round %d, killed after %v: %v", round, moment, err)
				}
				in.Close()
				cmd.Wait() //nolint:errcheck // it was killed
			})
		}
		killed.Wait()
		for i := range outs {
			if strings.Contains(outs[i].String(), `"id":2,`) {
				answered++
			}
		}
		noneLeft(t, pids, before, mark)
	}
	t.Logf("of %d, killed within %v, %d had answered their call", rounds*atATime, life.Round(time.Millisecond),
		answered)
	if answered == rounds*atATime {
		t.Error("none was killed before its call had been answered")
	}
}

// lifeOfACall is how long it takes n bridges, started at once, to answer their first call, all of
// them.
func lifeOfACall(t *testing.T, n int) time.Duration {
	t.Helper()
	begin := time.Now()
	var answered sync.WaitGroup
	for range n {
		c := serve(t, command(t, nil))
		_, answer := c.start("tools/call", map[string]any{"name": "run_python",
			"arguments": map[string]any{"code": "import time; time.sleep(0.3)", "servers": []string{},
				"timeout": 100}})
		answered.Go(func() { <-answer })
	}
	answered.Wait()
	return time.Since(begin)
}

// markVar tells what a bridge of a test has started from what other bridges have: one that is
// passed on to podman.
const markVar = "PODMAN_TEST_MARK"

// oneCall is what a client writes for one call, all at once.
const oneCall = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"import time; time.sleep(0.3)","servers":[],"timeout":100}}}
`

// noneLeft waits until nothing is left of bridges that were killed. What other bridges on this
// machine do is their own affair.
func noneLeft(t *testing.T, pids []int, before []string, mark string) {
	t.Helper()
	allGone(t, func() []string {
		left := append(servicesLeft(t, pids, before, mark), monitorsOf(pids)...)
		for _, pid := range pids {
			left = append(left, consolesOf(t, pid)...)
		}
		if len(left) == 0 { // asked last, since it takes longest
			left = containersOf(t, pids)
		}
		return left
	})
}

// servicesLeft are the API services with the mark in their environment, and the new directories of
// these bridges, whose number is in the name.
func servicesLeft(t *testing.T, pids []int, before []string, mark string) (left []string) {
	for _, pid := range processes("system\x00service") {
		if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil &&
			bytes.Contains(env, []byte(mark)) {
			left = append(left, fmt.Sprintf("API service %d", pid))
		}
	}
	for _, d := range runtimeDirs(t) {
		own := func(pid int) bool { return strings.HasPrefix(filepath.Base(d), fmt.Sprintf("mcp-bridge-%d-", pid)) }
		if !slices.Contains(before, d) && slices.ContainsFunc(pids, own) {
			left = append(left, "directory "+d)
		}
	}
	return left
}

// containersOf are those with one of these owners that the engine still knows, if only by name.
func containersOf(t *testing.T, pids []int) []string {
	t.Helper()
	args := []string{"ps", "-a", "--format", "{{.ID}} {{.Names}}"}
	if anyEngine(t) == "podman" {
		args = append(args, "--external")
	}
	var out []byte
	within(t, "the engine lists its containers", func() bool {
		var stderr strings.Builder
		cmd := exec.Command(anyEngine(t), args...)
		cmd.Stderr = &stderr
		var err error
		out, err = cmd.Output()
		gone := strings.Contains(stderr.String(), "container not known") // podman's, of one that goes meanwhile
		if err != nil && !gone {
			t.Fatalf("listing containers: %v: %s", err, &stderr)
		}
		return err == nil
	})
	var found []string
	for line := range strings.Lines(string(out)) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if o, ok := runtime.OwnerNamed(name, runtime.Owner{}); ok && slices.Contains(pids, o.PID) {
			found = append(found, "container "+id)
		}
	}
	return found
}

// TestKilledContainer: a container that another program kills is told as what it is.
func TestKilledContainer(t *testing.T) {
	needEngine(t)
	cmd := command(t, nil)
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_STANDBY=0") // so that the container is the run's
	c := serve(t, cmd)
	_, answer := c.startLong()
	out, err := exec.Command("podman", "ps", "-q", "--filter",
		fmt.Sprintf("label=%s=%d", runtime.LabelPID, c.cmd.Process.Pid)).Output()
	must(t, err)
	if out, err := exec.Command("podman", "kill", strings.TrimSpace(string(out))).CombinedOutput(); err != nil {
		t.Fatalf("podman kill: %v: %s", err, out)
	}
	got := parseAnswer(t, <-answer)
	if !got.IsError || !strings.Contains(got.Text, "ended from outside") || !strings.Contains(got.Text, "up") {
		t.Errorf("got %+v", got)
	}
}

// TestServiceKilled: the API service dies in the middle of a run. The call says so, nothing of its
// container is left, and the next call works with a new service.
func TestServiceKilled(t *testing.T) {
	needEngine(t)
	c := serve(t, command(t, nil))
	_, answer := c.startLong()
	killed := 0
	for _, pid := range servicesOf(t, c.cmd.Process.Pid) {
		if err := sendSignal(pid, syscall.SIGKILL); err == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Skip("the engine's service isn't the bridge's own here")
	}
	got := parseAnswer(t, <-answer)
	if !got.IsError || !strings.Contains(got.Text, "up\n") || !strings.Contains(got.Text, "went away") ||
		!strings.Contains(got.Text, "Next: ") {
		t.Errorf("got %+v, want it to say that the engine went away, and what to do", got)
	}
	t.Log(got.Text)
	c.works()
	s := &scene{t: t, bridge: c.cmd.Process.Pid, mark: "no process has this mark", before: runtimeDirs(t)}
	within(t, "no container is left but a standby", func() bool { return len(s.containers()) <= keptReady })
}

// TestInterruptedTwice: Claude Code ends a server by SIGINT and, 0.1 s later, SIGTERM, and logs a
// failure of one that this kills. The bridge ends with status 0 though its server holds out, and
// the watchdog ends that.
func TestInterruptedTwice(t *testing.T) {
	for _, second := range []syscall.Signal{0, syscall.SIGTERM, syscall.SIGINT} {
		t.Run(second.String(), func(t *testing.T) {
			dir := t.TempDir()
			script, mark := filepath.Join(dir, "stubborn.py"), "interrupted-"+strconv.Itoa(os.Getpid())+second.String()
			must(t, os.WriteFile(script, []byte(stubborn), 0o600))
			c := serve(t, command(t, map[string]entry{
				"stubborn": {Command: "python3", Args: []string{"-c", stubborn, script, mark}},
			}))
			c.killed = true
			holds(t, c.search(map[string]any{"server": "stubborn"}), "poke")
			if n := len(processes(mark)); n != 2 {
				t.Errorf("%d processes of the server run, want 2", n)
			}
			began := time.Now()
			_ = c.cmd.Process.Signal(os.Interrupt)
			if second != 0 {
				time.Sleep(10 * time.Millisecond) // as a client does, only sooner
				_ = c.cmd.Process.Signal(second)
			}
			<-c.ended
			if err := c.cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			t.Logf("it ended %v after the first signal", time.Since(began))
			within(t, "nothing of the server is left", func() bool { return len(processes(mark)) == 0 })
		})
	}
}
