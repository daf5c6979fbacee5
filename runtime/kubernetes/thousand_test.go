//go:build kubernetes

package kubernetes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

const childVar = "MCP_BRIDGE_TEST_SANDBOXES" // how many a child process keeps; it is the bridge

// TestThousandSandboxes: a bridge, which is a process of its own, keeps 1,000 sandboxes that last
// in at most 200 MB, and a call in one of them costs no request of the API server. The sandboxes
// are simulated: they say what a guest says. The collector is told to keep the heap small, without
// which it takes 50 MB more. Without MCP_BRIDGE_TEST_LONG=1 there are 50 of them, and memory isn't
// looked at, since the race detector has most of it.
func TestThousandSandboxes(t *testing.T) {
	if n, err := strconv.Atoi(os.Getenv(childVar)); err == nil {
		keepSandboxes(t, n)
		return
	}
	n, long := 50, os.Getenv("MCP_BRIDGE_TEST_LONG") != ""
	if long {
		n = 1000
	}
	f := newFake(t)
	f.simulate = lasting
	f.driver(t, Config{}) // sets KUBECONFIG
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	// The limit is as docs/kubernetes.md says.
	cmd.Env = append(os.Environ(), childVar+"="+strconv.Itoa(n), "GOMEMLIMIT=128MiB")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended unless the test has failed
	out := bufio.NewReader(stdout)
	awaitLine(t, out, "kept")
	before := f.counts()
	began := time.Now()
	fmt.Fprintln(stdin, "call")
	awaitLine(t, out, "called")
	t.Logf("%d calls took %v", 2*n, time.Since(began).Round(time.Millisecond))
	for request, count := range f.counts() {
		if request == "list pods" { // of the sweep, once a minute
			continue
		}
		if more := count - before[request]; more > 0 && strings.Contains(request, "pods") {
			t.Errorf("%s: %d requests for %d calls, want none", request, more, 2*n)
		}
	}
	t.Logf("until then: %v", before)
	memory := memoryOf(t, cmd.Process.Pid, "VmRSS")
	t.Logf("the bridge with %d sandboxes has %d MB, %d of them the program's file; at most it had %d", n, memory,
		memoryOf(t, cmd.Process.Pid, "RssFile"), memoryOf(t, cmd.Process.Pid, "VmHWM"))
	if long && memory > 200 {
		t.Errorf("the bridge has %d MB, want at most 200", memory)
	}
	fmt.Fprintln(stdin, "end")
	awaitLine(t, out, "ended")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, pods := f.count(""); pods != 0 {
		t.Errorf("%d pods are left", pods)
	}
}

// awaitLine reads until a line is so.
func awaitLine(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	var read strings.Builder
	for {
		line, err := r.ReadString('\n')
		if strings.TrimSpace(line) == want {
			return
		}
		read.WriteString(line)
		if err != nil {
			t.Fatalf("the bridge didn't say %q: %v\n%s", want, err, read.String())
		}
	}
}

// memoryOf returns a line of what the kernel says of a process's memory, in MB.
func memoryOf(t *testing.T, pid int, line string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := regexp.MustCompile(line + `:\s+(\d+) kB`).FindSubmatch(text)
	if err != nil || m == nil {
		t.Fatalf("%v: %s", err, text)
	}
	kb, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return kb >> 10
}

// keepSandboxes is the bridge. It does what its input says.
func keepSandboxes(t *testing.T, n int) {
	d := New(Config{Context: "here"})
	defer d.Close()
	s, err := sandbox.New(d, sandbox.Config{
		Images: []string{"registry.example/here:1"}, User: "65534:65534", Owner: runtime.Self(),
		Limits:      runtime.Limits{Memory: 256 << 20, PIDs: 64, CPUs: 1, NoFile: 1024, Shm: 16 << 20},
		OutputLimit: 64 << 10, ArtifactLimit: 1 << 20, MaxCalls: 1, MaxRuns: 16, MaxContainers: n,
		StartTimeout: time.Minute, MaxTimeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	kept := make([]*sandbox.Kept, n)
	each := func(do func(i int) error) {
		var workers sync.WaitGroup
		next := make(chan int)
		for range 8 {
			workers.Go(func() {
				for i := range next {
					if err := do(i); err != nil {
						t.Errorf("sandbox %d: %v", i, err)
					}
				}
			})
		}
		for i := range n {
			next <- i
		}
		close(next)
		workers.Wait()
	}
	each(func(i int) (err error) {
		kept[i], err = s.Keep(t.Context(), sandbox.KeepRequest{MaxAge: time.Hour})
		return err
	})
	if t.Failed() {
		return
	}
	in := bufio.NewReader(os.Stdin)
	fmt.Println("kept") //nolint:forbidigo // to the test
	_, _ = in.ReadString('\n')
	for range 2 {
		each(func(i int) error {
			r, err := kept[i].Run(t.Context(), sandbox.Request{Code: "1", Timeout: time.Minute}, nil)
			if err == nil && (r.Status != sandbox.StatusOK || r.Stdout() != "1") {
				err = fmt.Errorf("got %+v", r)
			}
			return err
		})
	}
	fmt.Println("called") //nolint:forbidigo // to the test
	_, _ = in.ReadString('\n')
	each(func(i int) error { return kept[i].Close() })
	fmt.Println("ended") //nolint:forbidigo // to the test
}

// lasting is a guest that lasts: it answers, is ready, answers pings, and prints its code.
func lasting(stdin io.Reader, out io.Writer) {
	in := bufio.NewReader(stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return
	}
	fmt.Fprintln(out)
	if err := transcript.SkipSource(in); err != nil {
		return
	}
	say := func(frame string, args ...any) { _, _ = io.WriteString(out, fmt.Sprintf(frame, args...)+"\n") }
	say(`{"type":"ready","protocol":2,"seccomp":true}`)
	for {
		line, err := in.ReadBytes('\n')
		var frame struct {
			Type, ID, Code string
			N              int64
		}
		if errors.Join(err, json.Unmarshal(line, &frame)) != nil {
			return
		}
		switch frame.Type {
		case entrypoint.TypePing:
			say(`{"type":"pong","n":%d}`, frame.N)
		case entrypoint.TypeExecute:
			say(`{"type":"started","id":%q}`, frame.ID)
			say(`{"type":"output","id":%q,"stream":"stdout","text":%q}`, frame.ID, frame.Code)
			say(`{"type":"done","id":%q,"ok":true,"durationMs":1,"wait":{"exited":true,"status":0,"told":true},`+
				`"sandbox":{"state":"kept"}}`, frame.ID)
		}
	}
}
