package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
)

// hostile is a program of testdata/hostile. The comments at its top say what it does and, each on a
// line of its own, what must come of it ("want:", one JSON object) and how many seconds it has
// ("timeout:", as many as it takes without); "alone" stands in one that moves or takes so much that
// no other runs beside it.
type hostile struct {
	name, code string
	want       hostileWant
	timeout    int
	alone      bool
}

// patience is how long anything may take that isn't about time, in seconds: the machine may be
// busy, and with the race detector a gigabyte takes minutes.
const patience = 600

// hostileWant is what a program must come to. What is nil isn't said. Texts are patterns in which *
// is any text; a status may be one of several with | between them: where it depends on what the
// engine enforces, or on which instruction was reached.
type hostileWant struct {
	Status    string          `json:"status"`
	ExitCode  json.RawMessage `json:"exitCode"` // a number, or "!0" for any other than 0
	Signal    *int            `json:"signal"`
	Stdout    *string         `json:"stdout"`
	Stderr    *string         `json:"stderr"`
	Message   *string         `json:"message"`
	Calls     *int            `json:"calls"`
	Truncated *bool           `json:"truncated"`
	Artifacts *int            `json:"artifacts"`
	Error     *struct {
		Type    *string `json:"type"`
		Message *string `json:"message"`
		Line    *int    `json:"line"`
	} `json:"error"`
}

// hostileGot is the part of a structured answer that is compared.
type hostileGot struct {
	Status   string `json:"status"`
	ExitCode int    `json:"exitCode"`
	Signal   int    `json:"signal"`
	Message  string `json:"message"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	Calls    int    `json:"calls"`
	Error    *struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Line    int    `json:"line"`
	} `json:"error"`
	Truncated *struct{}         `json:"truncated"`
	Artifacts []json.RawMessage `json:"artifacts"`
}

func loadHostile(t *testing.T) []hostile {
	t.Helper()
	paths, err := filepath.Glob("testdata/hostile/*.py")
	must(t, err)
	var all []hostile
	for _, path := range paths {
		code, err := os.ReadFile(path)
		must(t, err)
		h := hostile{name: strings.TrimSuffix(filepath.Base(path), ".py"), code: string(code), timeout: patience}
		prose := false
		for line := range strings.Lines(h.code) {
			text, comment := strings.CutPrefix(strings.TrimSpace(line), "# ")
			if !comment {
				break
			}
			if want, ok := strings.CutPrefix(text, "want: "); ok {
				d := json.NewDecoder(strings.NewReader(want))
				d.DisallowUnknownFields()
				if err := d.Decode(&h.want); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
			} else if seconds, ok := strings.CutPrefix(text, "timeout: "); ok {
				if h.timeout, err = strconv.Atoi(seconds); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
			} else if text == "alone" {
				h.alone = true
			} else {
				prose = true
			}
		}
		if h.want.Status == "" || !prose {
			t.Fatalf("%s: its comment must say what it does and, after %q, what must come of it", path, "want:")
		}
		all = append(all, h)
	}
	return all
}

// TestHostileSuite runs every program of testdata/hostile through one bridge: several at a time,
// then the heavy ones one by one. Each must come to what its comment says, with nothing lost of
// what it printed, and each time the bridge must answer the next call as if nothing had been.
func TestHostileSuite(t *testing.T) {
	needEngine(t)
	programs := loadHostile(t)
	if len(programs) < 60 {
		t.Fatalf("only %d programs", len(programs))
	}
	cmd := command(t, map[string]entry{"shop": shop(t), "other": shop(t)})
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_OUTPUT_MODE=structured", "MCP_BRIDGE_LOG_LEVEL=error",
		fmt.Sprintf("MCP_BRIDGE_MAX_TIMEOUT=%d", patience))
	c := serve(t, cmd)
	try := func(p hostile) {
		t.Run(p.name, func(t *testing.T) {
			p.check(t, c.structured(p.code, p.timeout))
			next := c.structured("print(6 * 7, mcp_shop.add(a=1, b=9007199254740993)[\"sum\"])", patience)
			if next.Status != "ok" || next.Stdout != "42 9007199254740994\n" {
				t.Errorf("the next call: %+v", next)
			}
		})
	}
	queue := make(chan hostile, len(programs))
	var alone []hostile
	for i, p := range programs {
		if testing.Short() && (i%8 != 0 || p.alone) {
			continue
		}
		if p.alone {
			alone = append(alone, p)
		} else {
			queue <- p
		}
	}
	close(queue)
	begin := time.Now()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for p := range queue {
				try(p)
			}
		})
	}
	wg.Wait()
	peak := peakMemory(t, c.cmd.Process.Pid)
	t.Logf("the bridge took %d MiB of memory for those", peak>>20)
	for _, p := range alone {
		try(p)
		if now := peakMemory(t, c.cmd.Process.Pid); now > peak {
			t.Logf("%s: %d MiB", p.name, now>>20)
			peak = now
		}
	}
	t.Logf("%d programs in %v", len(programs), time.Since(begin).Round(time.Second))
	s := &scene{t: t, bridge: c.cmd.Process.Pid}
	within(t, "no container is left but a standby", func() bool { return len(s.containers()) <= keptReady })
	// The most that one of them has it hold is 400 MB of results.
	t.Logf("the bridge took %d MiB of memory at most", peak>>20)
	if peak > hostilePeak {
		t.Errorf("the bridge took %d MiB of memory, and may take %d", peak>>20, hostilePeak>>20)
	}
}

// structured calls run_python of a bridge whose answers are structured, for the server shop alone.
func (c *client) structured(code string, timeout int) hostileGot {
	c.t.Helper()
	m := c.request("tools/call", map[string]any{"name": "run_python", "arguments": map[string]any{
		"code": code, "timeout": timeout, "servers": []string{"shop"},
	}})
	var r struct{ StructuredContent hostileGot }
	if m.Error != nil {
		c.t.Errorf("JSON-RPC error %d: %s", m.Error.Code, m.Error.Message)
	} else if err := json.Unmarshal(m.Result, &r); err != nil {
		c.t.Errorf("%v in %.200s", err, m.Result)
	}
	return r.StructuredContent
}

func (h hostile) check(t *testing.T, got hostileGot) {
	t.Helper()
	var wrong []string
	text := func(what string, want *string, got string) {
		if want != nil && !transcript.Text(*want, got) {
			wrong = append(wrong, fmt.Sprintf("%s is %.300q, want %.300q", what, got, *want))
		}
	}
	number := func(what string, want *int, got int) {
		if want != nil && *want != got {
			wrong = append(wrong, fmt.Sprintf("%s is %d, want %d", what, got, *want))
		}
	}
	status := false
	for _, s := range strings.Split(h.want.Status, "|") {
		status = status || transcript.Text(s, got.Status)
	}
	if !status {
		wrong = append(wrong, fmt.Sprintf("status is %s, want %s", got.Status, h.want.Status))
	}
	if w := h.want.ExitCode; len(w) > 0 && !bytes.Equal(w, []byte(strconv.Itoa(got.ExitCode))) &&
		(string(w) != `"!0"` || got.ExitCode == 0) {
		wrong = append(wrong, fmt.Sprintf("exit code is %d, want %s", got.ExitCode, w))
	}
	number("signal", h.want.Signal, got.Signal)
	number("calls", h.want.Calls, got.Calls)
	number("artifacts", h.want.Artifacts, len(got.Artifacts))
	text("stdout", h.want.Stdout, got.Stdout)
	text("stderr", h.want.Stderr, got.Stderr)
	text("message", h.want.Message, got.Message)
	if w := h.want.Truncated; w != nil && *w != (got.Truncated != nil) {
		wrong = append(wrong, fmt.Sprintf("truncated is %v, want %v", got.Truncated != nil, *w))
	}
	if w := h.want.Error; w != nil && got.Error == nil {
		wrong = append(wrong, "there is no error")
	} else if w != nil {
		text("error type", w.Type, got.Error.Type)
		text("error message", w.Message, got.Error.Message)
		number("error line", w.Line, got.Error.Line)
	}
	t.Logf("%s %d %s", got.Status, got.ExitCode, got.Message)
	if wrong != nil {
		t.Errorf("%s\ngot status %s, code %d, signal %d, message %q, calls %d, error %+v\nstdout %.300q\nstderr "+
			"%.1500q", strings.Join(wrong, "\n"),
			got.Status, got.ExitCode, got.Signal, got.Message, got.Calls, got.Error, got.Stdout, got.Stderr)
	}
}

// peakMemory is the most memory that a process has held, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			must(t, err)
			return kib << 10
		}
	}
	t.Fatal("the kernel doesn't tell the most memory of a process")
	return 0
}
