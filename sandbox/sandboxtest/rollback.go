package sandboxtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// A badCall ends the process that has the variables of a sandbox.
type badCall struct {
	name, code string
	timeout    time.Duration // zero: it ends by itself long before its time
	cancel     bool          // as soon as it prints
}

// badCalls do so each in a way of its own.
var badCalls = []badCall{
	{name: "timeout", code: "while True: pass", timeout: 300 * time.Millisecond},
	{name: "cancel", code: "print('begun')\nwhile True: pass", cancel: true},
	{name: "memory", code: "hog = []\nwhile True: hog.append(bytearray(8 << 20))"},
	{name: "SIGKILL", code: "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"},
	{name: "segfault", code: "import ctypes; ctypes.string_at(0)"},
	{name: "os._exit", code: "import os; os._exit(7)"},
	{name: "fork bomb", timeout: 500 * time.Millisecond,
		code: "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"},
	{name: "stack overflow", code: "import ctypes, resource, sys\nsys.setrecursionlimit(1 << 30)\n" +
		"resource.setrlimit(resource.RLIMIT_STACK, (1 << 14, -1))\n" +
		"f = ctypes.CFUNCTYPE(None)(lambda: f()); f()"},
	{name: "descriptors", code: "import os; os.closerange(0, 4096)"},
}

// Rollback makes every bad call rounds times in one sandbox, and after each finds the variables of
// before. It logs how long the next answers took, which depends on the machine. If most isn't nil,
// it returns the most that 95 in 100 of them may take after a bad call of a name. The image has
// python3.
func Rollback(t *testing.T, d runtime.Driver, image string, rounds int, most func(bad string) time.Duration) {
	s, err := sandbox.New(d, config(image, runtime.Self()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it has none to give
	k, err := s.Keep(t.Context(), sandbox.KeepRequest{MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close() //nolint:errcheck // it has none to give
	well(t, k, "state, n = {'rows': list(range(1000))}, 0\nimport random; random.seed(1)", "")
	n := 0
	facts, err := d.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range badCalls {
		t.Run(bad.name, func(t *testing.T) {
			if bad.name == "fork bomb" && !facts.Enforces.PIDs && !facts.OwnUsers {
				t.Skip("PROPERTY: nothing but the guest's watch limits processes here: a fork bomb may take the sandbox")
			}
			var back, whole []time.Duration
			for range rounds {
				own := bad.call(t, k)
				begin := time.Now()
				well(t, k, "n += 1; print(len(state['rows']), n)", fmt.Sprintf("1000 %d\n", n+1))
				n++
				back, whole = append(back, time.Since(begin)), append(whole, time.Since(begin)+own)
			}
			slices.Sort(back)
			slices.Sort(whole)
			p95 := back[len(back)*95/100]
			t.Logf("to the next answer: p50 %v, p95 %v; with the bad call's own time beyond its limit: p50 %v, p95 %v",
				back[len(back)/2], p95, whole[len(whole)/2], whole[len(whole)*95/100])
			if most != nil && p95 > most(bad.name) {
				t.Errorf("to the next answer: p95 %v, at most %v", p95, most(bad.name))
			}
		})
	}
}

// call makes the bad call, and returns how long it took beyond its limit.
func (bad badCall) call(t *testing.T, k *sandbox.Kept) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := sandbox.Request{Code: "state['rows'].clear(); n = -1\n" + bad.code, Timeout: time.Minute}
	if bad.timeout > 0 {
		r.Timeout = bad.timeout
	}
	if bad.cancel {
		r.Output = func(sandbox.Chunk) { cancel() }
	}
	got, err := k.Run(ctx, r, noHost{})
	if err != nil || got.Kept.State != sandbox.StateBefore {
		t.Fatalf("got %+v, %+v, %v", got, got.Kept, err)
	}
	return got.Took.Total - min(got.Took.Total, bad.timeout)
}

// well runs code that ends well and prints want.
func well(t *testing.T, k *sandbox.Kept, code, want string) {
	t.Helper()
	got, err := k.Run(t.Context(), sandbox.Request{Code: code, Timeout: time.Minute}, noHost{})
	if err != nil || got.Status != sandbox.StatusOK || got.Stdout() != want ||
		got.Kept.State != sandbox.StateKept {
		t.Fatalf("%s: got %q, %+v, %+v, %v, want %q", code, got.Stdout(), got, got.Kept, err, want)
	}
}
