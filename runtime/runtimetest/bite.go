package runtimetest

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// engineEnv is what engines add to the environment by themselves; none of it tells anything of the
// host.
var engineEnv = []string{"container", "HOSTNAME", "TERM", "LC_CTYPE"}

// memoryBites uses up the memory.
func memoryBites(t *testing.T, g Target, in *inspection) {
	t.Helper()
	if !in.facts.Enforces.Memory {
		in.note("memory: the engine doesn't; the guest does, by RLIMIT_AS for each process and by watching the sum")
		return
	}
	exit, _, _ := g.run(t, g.Spec("b = bytearray(1<<30)\nfor i in range(0, len(b), 4096): b[i] = 1"))
	if !exit.OOMKilled && exit.Code != 137 {
		in.problem("1 GiB could be used: %+v", exit)
	}
}

// pidsBite starts processes without end.
func pidsBite(t *testing.T, g Target, in *inspection) {
	t.Helper()
	if !in.facts.Enforces.PIDs {
		by := "by watching"
		if in.facts.OwnUsers {
			by = "by RLIMIT_NPROC, which counts the container's own processes"
		}
		in.note("processes: the engine doesn't; the guest does, %s", by)
		return
	}
	_, out, _ := g.run(t, g.Spec("import os,time\nn=0\ntry:\n  while n < 1000:\n    if os.fork() == 0:"+
		" time.sleep(30); os._exit(0)\n    n += 1\nexcept OSError: pass\nprint(n < 100, end='')"))
	if out != "True" {
		in.problem("more than 100 processes could be started")
	}
}

// tmpfsBites fills a directory.
func tmpfsBites(t *testing.T, g Target, in *inspection) {
	t.Helper()
	_, out, _ := g.run(t, g.Spec("n=0\ntry:\n  with open('/tmp/f','wb') as f:\n    while True: n +="+
		" f.write(bytes(1<<20)); f.flush()\nexcept OSError as e: print(e.errno, n <= 8<<20, end='')"))
	if out != "28 True" { // ENOSPC
		in.problem("filling /tmp: got %q, want ENOSPC at its size", out)
	}
}

// ownUsers has two containers up at a time, each with as many processes as it may have by
// RLIMIT_NPROC: together they have more than that. A pod's own first process counts with them.
func ownUsers(t *testing.T, g Target, in *inspection) {
	t.Helper()
	if !in.facts.OwnUsers {
		in.note("containers share one, so RLIMIT_NPROC would count their processes together")
		return
	}
	both := make(chan struct{}) // closed once both are up
	var up sync.WaitGroup
	up.Add(2)
	go func() { up.Wait(); close(both) }()
	told := make([]string, 2)
	var runs sync.WaitGroup
	for i := range told {
		runs.Go(func() {
			stdin, w := io.Pipe()
			var once sync.Once
			var out syncBuffer
			said := writerFunc(func(p []byte) {
				out.Write(p) //nolint:errcheck // a buffer
				once.Do(up.Done)
			})
			go func() { <-both; w.Close() }()
			program := "import os,resource,sys\nresource.setrlimit(resource.RLIMIT_NPROC, (20, 20))\nn = 0\ntry:\n" +
				"  while True:\n    if os.fork() == 0: os.read(0, 1); os._exit(0)\n    n += 1\nexcept OSError: pass\n" +
				"print(os.readlink('/proc/self/ns/user'), n, flush=True)\nsys.stdin.read()"
			_, err := g.Driver.Run(t.Context(), g.Spec(program),
				runtime.Stdio{Stdin: stdin, Stdout: said, Stderr: io.Discard})
			once.Do(up.Done)
			if err != nil {
				t.Error(err)
			}
			told[i] = out.String()
		})
	}
	runs.Wait()
	first, second := strings.Fields(told[0]), strings.Fields(told[1])
	forked := 0
	for _, said := range [][]string{first, second} {
		if len(said) == 2 {
			n, _ := strconv.Atoi(said[1])
			forked += n
		}
	}
	if len(first) != 2 || len(second) != 2 || first[0] == second[0] || forked <= 20 {
		in.problem("two containers at a time have the user namespaces and forked processes %v and %v, want two,"+
			" and more than 20 processes together", first, second)
	}
}
