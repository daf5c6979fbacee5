package sandboxtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Statuses that a bomb may have.
var (
	ok       = []sandbox.Status{sandbox.StatusOK}
	raised   = []sandbox.Status{sandbox.StatusError}
	timeout  = []sandbox.Status{sandbox.StatusTimeout}
	noMemory = []sandbox.Status{sandbox.StatusMemoryLimit}
	exited   = []sandbox.Status{sandbox.StatusExit}
	// An engine's limit makes the call fail; the guest's watch ends the run.
	refusedOrEnded = []sandbox.Status{sandbox.StatusError, sandbox.StatusExit}
)

// What is so in gVisor, which has a kernel of its own.
const (
	gVisorMemory = "gVisor ends the code with exit code 1 when the memory of its control group is used " +
		"up, and no limit is named"
	gVisorProcesses = "in gVisor that number of processes takes more than the memory, by its own count, so " +
		"that " +
		"limit may come first"
	gVisorCores = "the times that gVisor gives are no measure of the machine's cores, and binding to " +
		"cores means nothing in it: only an engine limits them"
)

var bombs = []bomb{
	{name: "2 GiB at once", status: noMemory, says: "256 MiB",
		code: "x = bytearray(2 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1"},
	{name: "2 GiB in pieces", status: noMemory, says: "256 MiB", gVisor: gVisorMemory,
		code: "x = []\nwhile True: x.append(b'x' * (1 << 20))"},
	{name: "2 GiB in small objects", status: noMemory, says: "256 MiB", gVisor: gVisorMemory,
		code: "x = []\nwhile True: x.append([len(x)])"},
	{name: "2 GiB mapped and shared", status: []sandbox.Status{sandbox.StatusError, sandbox.StatusMemoryLimit},
		says: "256 MiB", gVisor: gVisorMemory,
		code: "import mmap\nm = mmap.mmap(-1, 2 << 30)\nfor i in range(0, len(m), 4096): m[i] = 1"},
	{name: "memory of many processes", status: append(noMemory, sandbox.StatusExit), check: manyProcesses,
		code: "import os, sys\nfor _ in range(12):\n  if os.fork() == 0:\n    x = b'x' * (60 << 20)\n" +
			"    while True: pass\n" +
			"killed = [os.WTERMSIG(os.wait()[1]) for _ in range(12 - 4)]\nprint('killed by', *killed)\nsys.exit(9)"},
	{name: "fork bomb", status: slices.Concat(refusedOrEnded, []sandbox.Status{sandbox.StatusMemoryLimit}),
		gVisor: gVisorProcesses, check: pidsOrMemory,
		code: "import os\nwhile True: os.fork()"},
	{name: "fork bomb that goes on", gVisor: gVisorProcesses, timeout: 4 * time.Second,
		status: []sandbox.Status{sandbox.StatusTimeout, sandbox.StatusExit}, check: pidsOrTime,
		code: "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"},
	{name: "thread bomb", status: refusedOrEnded, says: "MCP_BRIDGE_PIDS",
		code: "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(1000,), " +
			"daemon=True).start()"},
	{name: "programs started without end", status: refusedOrEnded, says: "MCP_BRIDGE_PIDS",
		gVisor: gVisorProcesses,
		code:   "import subprocess\nx = []\nwhile True: x.append(subprocess.Popen(['sleep', '1000']))"},
	{name: "zombies that are not waited for", status: refusedOrEnded, says: "MCP_BRIDGE_PIDS",
		gVisor: gVisorProcesses,
		code:   "import os\nwhile True:\n  if os.fork() == 0: os._exit(0)"},
	{name: "orphans without a parent", status: ok, prints: "few",
		code: "import os\nfor _ in range(400):\n  if (p := os.fork()) == 0:\n    if os.fork() == 0: " +
			"os._exit(0)\n    os._exit(0)\n  os.waitpid(p, 0)\n" +
			"n = sum(1 for p in os.listdir('/proc') if p.isdigit())\nprint('few' if n < 30 else n)"},
	{name: "output without end", timeout: 3 * time.Second, status: timeout, says: "time limit", check: outputCut,
		code: "while True: print('x' * 1000)"},
	{name: "output without a line's end", timeout: 3 * time.Second, status: timeout, says: "time limit",
		check: outputCut,
		code:  "import os\nb = b'x' * 65536\nwhile True: os.write(2, b)"},
	full("/tmp", 64<<20), full("/workspace", 128<<20), full("/ipc", 16<<20), full("/dev/shm", shm),
	{name: "files without end", timeout: 30 * time.Second,
		status: []sandbox.Status{sandbox.StatusMemoryLimit, sandbox.StatusError}, check: memoryOrFiles,
		code: "import os\nn = 0\nwhile True:\n  os.symlink('x' * 200, f'/tmp/{n}'); n += 1"},
	{name: "100,000 descriptors", status: raised, says: "1024 files",
		code: "import os\nx = []\nfor _ in range(100_000): x.append(os.open('/dev/null', os.O_RDONLY))"},
	{name: "100,000 descriptors, by socket pairs", status: raised, says: "1024 files",
		code: "import socket\nx = []\nfor _ in range(50_000): x.append(socket.socketpair())"},
	{name: "while True", timeout: 2 * time.Second, status: timeout, says: "time limit",
		check: inTime(2 * time.Second),
		code:  "while True: pass"},
	{name: "asleep for ever", timeout: 2 * time.Second, status: timeout, says: "time limit",
		check: inTime(2 * time.Second),
		code:  "import time\nwhile True: time.sleep(1000)"},
	{name: "asleep in C", timeout: 2 * time.Second, status: timeout, says: "time limit",
		check: inTime(2 * time.Second),
		code:  "import ctypes\nctypes.CDLL(None).pause()"},
	{name: "signals ignored", timeout: 2 * time.Second, status: timeout, says: "time limit",
		check: inTime(2 * time.Second),
		code: "import os, signal, time\nfor s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}: " +
			"signal.signal(s, signal.SIG_IGN)\n" +
			"os.setsid() if os.getpid() != os.getsid(0) else None\nwhile True: time.sleep(1000)"},
	{name: "stopped by itself", timeout: 2 * time.Second, status: timeout, says: "time limit",
		check: inTime(2 * time.Second),
		code:  "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"},
	{name: "everything killed that can be", status: exited, says: "signal 9",
		code: "import os, signal\ntry: os.kill(-1, signal.SIGKILL)\nexcept ProcessLookupError: pass\n" +
			"os.kill(os.getpid(), signal.SIGKILL)"},
	{name: "memory that no process has", status: ok, prints: "none [1, 1, 1]",
		code: "import ctypes, os, resource\nlibc = ctypes.CDLL(None, use_errno=True)\n" +
			"try: print(os.memfd_create('x'))\nexcept OSError: print('none', end=' ')\n" +
			"e = []\nfor f, a in (libc.shmget, (0, 1 << 30, 0o1600)), (libc.semget, (0, 1000, 0o1600)), " +
			"(libc.msgget, (0, 0o1600)):\n" +
			"  e.append(ctypes.get_errno() if f(*a) < 0 else 'made')\nprint(e)"},
	{name: "more cores than the limit", timeout: 30 * time.Second, status: ok, prints: "cores",
		gVisor: gVisorCores,
		code: "import os, time\n" +
			"def spin():\n  end = time.monotonic() + 2\n  while time.monotonic() < end: pass\n" +
			"begin = time.monotonic()\nfor _ in range(4):\n  if os.fork() == 0:\n    spin(); os._exit(0)\n" +
			"for _ in range(4): os.wait()\n" +
			"took, used = time.monotonic() - begin, sum(os.times()[:4])\nprint('cores', 'held' if used < 1.5 * " +
			"took else (used, took))",
		check: coresHeld},
}

// full fills a directory and says so; what is written into it is counted as the run's memory, but
// it is smaller than that.
func full(place string, size int64) bomb {
	return bomb{name: "full " + place, status: raised, says: fmt.Sprintf("%s is full, with %d MiB", place,
		size>>20),
		code: fmt.Sprintf("n = 0\ntry:\n  with open(%q, 'wb', 0) as f:\n    while True: n += f.write(bytes(1 "+
			"<< 20))\nfinally: print(n)", place+"/f"),
		prints: fmt.Sprintf("%d\n", size),
	}
}

// manyProcesses: an engine kills one process after the other, the guest's watch kills all.
func manyProcesses(_ *testing.T, r run) string {
	if r.Status == sandbox.StatusMemoryLimit {
		return ""
	}
	if !r.facts.Enforces.Memory || !strings.Contains(r.Stdout(), "killed by 9 9 9 9") {
		return fmt.Sprintf("720 MiB could be used: %q", r.Stdout())
	}
	return ""
}

// memoryOrFiles: a tmpfs bounds its number of files, and each takes memory of the kernel's;
// which ends first is the machine's.
func memoryOrFiles(_ *testing.T, r run) string {
	if r.Status == sandbox.StatusMemoryLimit && strings.Contains(r.Message, "256 MiB") ||
		strings.Contains(failure(r.Error), "/tmp is full, with") {
		return ""
	}
	return "the limit is not named"
}

// pidsOrMemory: 64 processes that each tell of an exception need some 4 MiB each for it, so they
// may use up the memory first. The limit that ended the run is named.
func pidsOrMemory(_ *testing.T, r run) string {
	limit := "MCP_BRIDGE_PIDS"
	if r.Status == sandbox.StatusMemoryLimit {
		limit = "MCP_BRIDGE_MEMORY"
	}
	if !strings.Contains(r.Message, limit) {
		return limit + " is not named"
	}
	return ""
}

// pidsOrTime: where forks fail, the code may go on until its time is over; where they are counted,
// it is ended.
func pidsOrTime(_ *testing.T, r run) string {
	refused := r.kept["pids"] != sandbox.ByWatch
	if refused != (r.Status == sandbox.StatusTimeout) || !refused &&
		!strings.Contains(r.Message, "MCP_BRIDGE_PIDS") {
		return fmt.Sprintf("got %s, %s", r.Status, r.Message)
	}
	return ""
}

// outputCut: what is kept is bounded, and what is cut is counted.
func outputCut(_ *testing.T, r run) string {
	kept, cut := len(r.Stdout())+len(r.Stderr()), r.Truncated.Stdout+r.Truncated.Stderr
	if kept > output+200 || cut < output {
		return fmt.Sprintf("%d bytes are kept and %d cut", kept, cut)
	}
	return ""
}

// inTime: the code ends when its time is over, and its container soon after.
func inTime(limit time.Duration) func(*testing.T, run) string {
	return func(_ *testing.T, r run) string {
		if r.Took.Run < limit || r.Took.Run > limit+5*time.Second {
			return fmt.Sprintf("the code ran for %v, with %v", r.Took.Run, limit)
		}
		return ""
	}
}

func coresHeld(_ *testing.T, r run) string {
	if !strings.Contains(r.Stdout(), "held") {
		return "more than one core was used: " + r.Stdout()
	}
	return ""
}
