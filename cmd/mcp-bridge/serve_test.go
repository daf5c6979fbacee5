package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/startup"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// TestLockDownThroughTheGuest looks at a run from inside the code: what the engine gives, and what
// the guest adds.
func TestLockDownThroughTheGuest(t *testing.T) {
	needEngine(t)
	t.Setenv("MCP_BRIDGE_TEST_SECRET", "must-not-be-seen")
	cmd := command(t, map[string]entry{"shop": shop(t)}, "run", "-")
	cmd.Stdin = strings.NewReader(looksAround(t))
	cmd.Stderr = logFile(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkLockDown(t, string(out))
}

// looksAround returns code that reports what it finds of the lock-down.
func looksAround(t *testing.T) string {
	t.Helper()
	port, abstract := runtimetest.Outside(t)
	return fmt.Sprintf("import sys\nsys.argv[1:] = [%q, %q]\n%s", port, abstract, runtimetest.Probe)
}

// checkLockDown checks what that code has printed.
func checkLockDown(t *testing.T, out string) {
	t.Helper()
	r := runtimetest.ParseReport(t, out)
	spec := runtime.Spec{
		Limits: runtime.Limits{NoFile: startup.OpenFiles(noFile), Shm: shmSize},
		Tmpfs: []runtime.Tmpfs{{Path: "/ipc", Size: 16 << 20}, {Path: "/tmp", Size: 64 << 20},
			{Path: "/workspace", Size: 128 << 20}},
	}
	runtimetest.CheckReport(t, r, spec, []string{
		"HOME", "LANG", "PATH", "TMPDIR", "MALLOC_ARENA_MAX", "PYTHONDONTWRITEBYTECODE", "MPLBACKEND",
		"MPLCONFIGDIR",                              // ours
		"container", "HOSTNAME", "TERM", "LC_CTYPE", // the engine's and Python's
		"MCP_AVAILABLE_SERVERS", "MCP_DISCOVERED_SERVERS", // the guest's: names and descriptions
	})
	for class, names := range r.Classes {
		if slices.Contains(runtimetest.StrictClasses, class) {
			continue // the engine's to deny, where it takes our profile
		}
		for _, name := range names {
			runtimetest.CheckDenied(t, r, name)
		}
	}
	if len(r.Calls) < 80 {
		t.Errorf("only %d calls were tried", len(r.Calls))
	}
}

// TestSettingsThatOpenTheWall: where the user's own podman settings add files or devices of the
// host to every container, no code is run, and the user is told what to change.
func TestSettingsThatOpenTheWall(t *testing.T) {
	needEngine(t)
	home := os.Getenv("XDG_CONFIG_HOME")
	if home == "" {
		home = filepath.Join(os.Getenv("HOME"), ".config")
	}
	usual, err := os.ReadFile(filepath.Join(home, "containers", "containers.conf"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if os.Getenv("CONTAINER_HOST") != "" || strings.Contains(string(usual), "[containers]") {
		t.Skip("the engine's settings aren't ours to add to here")
	}
	host := t.TempDir()
	for name, setting := range map[string]string{
		"/hostdir":     fmt.Sprintf("volumes = [%q]", host+":/hostdir:rw"),
		"/dev/net/tun": `devices = ["/dev/net/tun:/dev/net/tun:rwm"]`,
	} {
		t.Run(name, func(t *testing.T) {
			conf := filepath.Join(t.TempDir(), "containers.conf")
			must(t, os.WriteFile(conf, fmt.Appendf(usual, "\n[containers]\n%s\n", setting), 0o600))
			cmd := command(t, nil, "run", "-c", "print('it ran')")
			cmd.Env = append(cmd.Env, "CONTAINERS_CONF="+conf)
			out, err := cmd.CombinedOutput()
			var ended *exec.ExitError
			if !errors.As(err, &ended) || ended.ExitCode() != exit.Unavailable ||
				!strings.Contains(string(out), "containers.conf") {
				t.Errorf("got %v: %s", err, out)
			}
			if name == "/dev/net/tun" {
				name = "/dev/net" // the directory that was made for it
			}
			if !strings.Contains(string(out), name) || strings.Contains(string(out), "it ran") {
				t.Errorf("got %s, want it to name %s and run nothing", out, name)
			}
		})
	}
}

func TestTwentyCallsAtOnce(t *testing.T) {
	needEngine(t)
	c := serve(t, command(t, map[string]entry{"shop": shop(t)}))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			got := c.python(fmt.Sprintf("print('call', %d, mcp_shop.add(a=%d, b=9007199254740993))", i, i),
				map[string]any{"timeout": 60, "servers": []string{"shop"}})
			if want := fmt.Sprintf("call %d", i); got.IsError || !strings.HasPrefix(got.Text, want) ||
				!strings.Contains(got.Text, fmt.Sprint(9007199254740993+i)) {
				t.Errorf("got %+v, want %q and the exact sum", got, want)
			}
		})
	}
	wg.Wait()
}

// TestFiftyToolCallsAtOnce: one after the other they would take 50 s, far longer than the run may.
func TestFiftyToolCallsAtOnce(t *testing.T) {
	needEngine(t)
	c := serve(t, command(t, map[string]entry{"shop": shop(t)}))
	got := c.python("import asyncio, time\nt = time.monotonic()\nr = await "+
		"asyncio.gather(*(mcp_shop.wait(ms=1000) for _ in range(50)))\nprint(len(r), 'answers')",
		map[string]any{"timeout": 20, "servers": []string{"shop"}})
	if got.IsError || !strings.Contains(got.Text, "50 answers") {
		t.Errorf("got %+v", got)
	}
	got = c.python("import asyncio, time\nt = time.monotonic()\nawait asyncio.gather(*(mcp_shop.wait(ms=100) "+
		"for _ in range(50)))\nprint(f'50 calls of 100 ms: {time.monotonic() - t:.3f} s')",
		map[string]any{"timeout": 20, "servers": []string{"shop"}})
	t.Log(got.Text) // a figure, not a verdict: the machine may be busy
}

func TestBigResultsAndOutput(t *testing.T) {
	needTime(t)
	needEngine(t)
	c := serve(t, command(t, map[string]entry{"shop": shop(t)}))
	if got := c.python("print(len(mcp_shop.big(bytes=10_000_000)))",
		map[string]any{"servers": []string{"shop"}}); got.IsError || strings.TrimSpace(got.Text) != "10000000" {
		t.Errorf("10 MB result: got %.200s", got.Text)
	}
	got := c.python("print('begin' + 'x' * 5_000_000 + 'end')", map[string]any{"servers": []string{}})
	if got.IsError || !strings.HasPrefix(got.Text, "beginxxx") || !strings.Contains(got.Text, "xxxend") ||
		!strings.Contains(got.Text, "bytes of stdout left out here, ") {
		t.Errorf("5 MB of output: got %.100s ... of %d bytes", got.Text, len(got.Text))
	}
}

// TestUpstreamTrouble: a server that dies or never answers is named, and troubles no other.
func TestUpstreamTrouble(t *testing.T) {
	needTime(t)
	needEngine(t)
	c := serve(t, command(t, map[string]entry{"shop": shop(t), "other": shop(t), "broken": {Command: "false"}}))
	tests := []struct {
		name, code string
		timeout    int
		isError    bool
		want       []string
	}{
		{"dies mid-call", "mcp_shop.exit(code=3)", 20, true, []string{"shop"}},
		{"works again", "print(mcp_shop.echo(text='back'))", 20, false, []string{"back"}},
		{"never answers", "import asyncio\nasyncio.ensure_future(mcp_shop.hang())\nprint(await " +
			"mcp_other.echo(text='others go on'), flush=True)\nawait mcp_shop.hang()", 3, true,
			[]string{"others go on", "3s"}},
		{"after that", "print(mcp_shop.echo(text='fine'))", 20, false, []string{"fine"}},
		{"doesn't start", "mcp_broken.anything()", 20, true, []string{"broken"}},
		{"says it failed", "mcp_shop.fail(message='sold out')", 20, true, []string{"ToolError", "sold out"}},
		{"no such tool", "mcp_shop.ecko(text='x')", 20, true, []string{"echo"}},
		{"not of this call", "from mcp import runtime\nruntime.call_tool('other', 'echo', {'text': 'x'})", 20, true,
			[]string{"other"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := map[string]any{"timeout": tt.timeout, "servers": []string{"shop", "other", "broken"}}
			if tt.name == "not of this call" {
				args["servers"] = []string{"shop"}
			}
			got := c.python(tt.code, args)
			if got.IsError != tt.isError {
				t.Errorf("isError is %v: %.300s", got.IsError, got.Text)
			}
			holds(t, got.Text, tt.want...)
		})
	}
}

// TestCancel: a client's cancellation ends the run, which would have gone on for two minutes, and
// is not answered.
func TestCancel(t *testing.T) {
	needEngine(t)
	c := serve(t, with(command(t, nil), "MCP_BRIDGE_STANDBY=0")) // so that the container is the run's
	id, answer := c.startLong()
	s := &scene{t: t, bridge: c.cmd.Process.Pid}
	if n := len(s.containers()); n != 1 {
		t.Fatalf("%d containers run, want 1", n)
	}
	c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled",
		"params": map[string]any{"requestId": id}})
	within(t, "the container is gone", func() bool { return len(s.containers()) == 0 })
	c.works()
	select {
	case m := <-answer:
		t.Errorf("a cancelled request was answered: %s", m.Result)
	default:
	}
}

// TestImagesThatCantBeUsed: one clear sentence with the next step each.
func TestImagesThatCantBeUsed(t *testing.T) {
	needTime(t)
	needEngine(t)
	for image, want := range map[string]string{"localhost/no-such-image:1": "image build",
		emptyImage(t): "python3"} {
		c := serve(t, with(command(t, nil), "MCP_BRIDGE_IMAGE="+image))
		if got := c.python("1", nil); !got.IsError || !strings.Contains(got.Text, image) ||
			!strings.Contains(got.Text, want) {
			t.Errorf("got %+v, want %q in it", got, want)
		}
	}
}

// emptyImage is an image without Python, or anything else.
func emptyImage(t *testing.T) string {
	t.Helper()
	const ref = "localhost/mcp-bridge/test-empty:latest"
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range []string{"etc/", "ipc/", "proc/", "sys/", "dev/", "tmp/", "workspace/"} {
		must(t, w.WriteHeader(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755}))
	}
	must(t, w.Close())
	cmd := exec.Command("podman", "import", "-q", "-", ref)
	cmd.Stdin = &b
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("podman import: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("podman", "rmi", "-f", ref).CombinedOutput(); err != nil {
			t.Errorf("podman rmi: %v: %s", err, out)
		}
	})
	return ref
}
