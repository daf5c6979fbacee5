package runtimetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// suiteImage has Python with its own tests, which the usual image hasn't; test/python-suite
// makes the tar that it is made of.
const suiteImage = "localhost/mcp-bridge/python-suite:latest"

// suiteModules are those of Python's tests that need more of a kernel than most, in so far as they
// take seconds and not minutes.
var suiteModules = []string{
	"test_json", "test_sqlite3", "test_subprocess", "test_threading", "test_tempfile", "test_os", "test_posix",
	"test_socket", "test_select",
	"test_selectors", "test_mmap", "test_signal", "test_pty", "test_fcntl", "test_ioctl", "test_shutil",
	"test_resource", "test_file",
	"test_asyncio.test_subprocess", "test_asyncio.test_unix_events", "test_asyncio.test_streams",
	"test_asyncio.test_events",
	"test_asyncio.test_sock_lowlevel", "test_multiprocessing_fork.test_misc",
	"test_concurrent_futures.test_thread_pool",
}

// strictOnly are the tests that fail under our seccomp profile and pass under an engine's, and why.
var strictOnly = map[string]string{
	"test.test_os.MemfdCreateTests.test_memfd_create": "memory that is not counted",
}

//go:embed suite.py
var suitePy string

// suite is what suite.py prints.
type suite struct {
	Ran     int
	Failed  []string
	Skipped []string
}

// Python runs tests of Python's own with an engine's seccomp profile and with ours, and names those
// that fail with ours alone: they must be those of strictOnly. It wants
// MCP_BRIDGE_TEST_PYTHON_SUITE to be what test/python-suite has made, and takes two minutes.
func Python(t *testing.T, engines, strict Target) {
	tar := os.Getenv("MCP_BRIDGE_TEST_PYTHON_SUITE")
	if tar == "" {
		t.Skip("MCP_BRIDGE_TEST_PYTHON_SUITE is not set: test/python-suite makes what it names")
	}
	importSuite(t, engines, tar)
	facts, err := strict.Driver.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if facts.Seccomp != "strict" {
		t.Fatalf("the engine's filter is %q, want ours", facts.Seccomp)
	}
	with, without := strict.suite(t, suiteModules...), engines.suite(t, suiteModules...)
	t.Logf("tests: %d with our profile, %d with the engine's; failed: %d, %d; skipped: %d, %d", with.Ran,
		without.Ran,
		len(with.Failed), len(without.Failed), len(with.Skipped), len(without.Skipped))
	if with.Ran < 1000 || without.Ran != with.Ran {
		t.Errorf("%d tests were run with our profile and %d with the engine's", with.Ran, without.Ran)
	}
	for _, name := range missing(with.Failed, without.Failed) {
		if why := strictOnly[name]; why != "" {
			t.Logf("PROPERTY: %s fails with our profile: %s", name, why)
		} else if again := strict.suite(t, append(slices.Clone(suiteModules), "-m",
			name)...); len(again.Failed) > 0 || again.Ran == 0 {
			t.Errorf("%s fails with our profile alone", name)
		} else {
			t.Logf("%s failed once and passed once with our profile", name)
		}
	}
	for _, name := range missing(with.Skipped, without.Skipped) {
		t.Logf("%s is skipped with our profile alone", name)
	}
}

// missing returns those of all that some hasn't.
func missing(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

func importSuite(t *testing.T, g Target, tar string) {
	t.Helper()
	if _, has, err := g.Driver.FindImage(t.Context(), suiteImage); err != nil || has {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	f, err := os.Open(tar)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := g.Driver.(runtime.ImageImporter).ImportImage(t.Context(), suiteImage, f); err != nil {
		t.Fatal(err)
	}
}

// suite runs Python's tests in a container that differs only in its room.
func (g Target) suite(t *testing.T, args ...string) suite {
	t.Helper()
	s := g.Spec(suitePy, args...)
	s.Image = suiteImage
	s.Limits = runtime.Limits{Memory: 2 << 30, PIDs: 512, NoFile: 1024, Shm: 64 << 20}
	s.Tmpfs = []runtime.Tmpfs{{Path: "/tmp", Size: 256 << 20}, {Path: "/workspace", Size: 256 << 20}}
	s.MaxAge = 10 * time.Minute
	exit, out, errs := g.run(t, s)
	var got suite
	if err := json.Unmarshal([]byte(out), &got); exit.Code != 0 || err != nil {
		t.Fatalf("the tests ended with code %d: %v\n%s", exit.Code, err, tail(errs))
	}
	return got
}

func tail(text string) string {
	lines := strings.Split(text, "\n")
	return fmt.Sprint(strings.Join(lines[max(0, len(lines)-40):], "\n"))
}
