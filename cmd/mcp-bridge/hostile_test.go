package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
)

// hostile is a program of testdata/hostile. The comments at its top say what it does and, each on
// a line of its own, what must come of it ("want:", one JSON object) and how many seconds it has
// ("timeout:", as many as it takes without); "alone" stands in one that moves or takes so much
// that no other runs beside it. "kept:" and "again:" say what comes of it in a sandbox and the
// second time there, and "next:" what becomes of the next call, where that is something else. Of
// the members of a wanted object texts are patterns in which * is any text, a status may be one of
// several with | between them, exitCode may be "!0", truncated says whether there is such a
// member, and artifacts is how many there are.
type hostile struct {
	name, code        string
	want              map[string]any
	kept, again, next map[string]any
	timeout           int
	alone             bool
}

// patience is how long anything may take that isn't about time, in seconds: the machine may be
// busy, and with the race detector much output takes minutes.
const patience = 600

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
			word, value, _ := strings.Cut(text, ": ")
			of := map[string]*map[string]any{"want": &h.want, "kept": &h.kept, "again": &h.again, "next": &h.next}
			if to := of[word]; to != nil {
				if err := json.Unmarshal([]byte(value), to); err != nil {
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
		if h.want["status"] == nil || !prose {
			t.Fatalf("%s: its comment must say what it does and, after %q, what must come of it", path, "want:")
		}
		all = append(all, h)
	}
	return all
}

// TestHostileSuite runs every program of testdata/hostile through a bridge: several at a time, then
// the heavy ones one by one, through the program as it is built where there is one, since the race
// detector would have a gigabyte take minutes. Each must come to what its comment says, with
// nothing lost of what it printed, and each time the bridge must answer the next call as if nothing
// had been.
func TestHostileSuite(t *testing.T) {
	needEngine(t)
	programs := loadHostile(t)
	if len(programs) < 60 {
		t.Fatalf("only %d programs", len(programs))
	}
	start := func(program string) *client {
		cmd := command(t, map[string]entry{"shop": shop(t), "other": shop(t)})
		cmd.Env = append(cmd.Env, "MCP_BRIDGE_OUTPUT_MODE=structured", "MCP_BRIDGE_LOG_LEVEL=error",
			fmt.Sprintf("MCP_BRIDGE_MAX_TIMEOUT=%d", patience))
		if program != "" {
			cmd.Path = program
		}
		return serve(t, cmd)
	}
	c := start("")
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
	s := &scene{t: t, bridge: c.cmd.Process.Pid}
	noneLeft := func() bool { return len(s.containers()) <= keptReady }
	within(t, "no container is left but a standby", noneLeft)
	if built := os.Getenv("MCP_BRIDGE_TEST_BUILT"); built != "" && len(alone) > 0 {
		c = start(built)
		s.bridge = c.cmd.Process.Pid
	}
	for _, p := range alone {
		try(p)
		if now := peakMemory(t, c.cmd.Process.Pid); now > peak {
			t.Logf("%s: %d MiB", p.name, now>>20)
			peak = now
		}
	}
	t.Logf("%d programs in %v", len(programs), time.Since(begin).Round(time.Second))
	within(t, "no container is left but a standby", noneLeft)
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
	check(t, h.want, got)
}

// check compares an answer with what is wanted.
func check(t *testing.T, want map[string]any, got hostileGot) {
	t.Helper()
	text, err := json.Marshal(got)
	must(t, err)
	var members map[string]any
	must(t, json.Unmarshal(text, &members))
	t.Logf("%s %d %s", got.Status, got.ExitCode, got.Message)
	if wrong := unlike("the result", want, members); wrong != nil {
		t.Errorf("%s\ngot %.3000s", strings.Join(wrong, "\n"), text)
	}
}

// unlike returns where a result isn't what is wanted.
func unlike(name string, want, got any) (wrong []string) {
	fits := false
	switch want := want.(type) {
	case map[string]any:
		members, _ := got.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			wrong = append(wrong, unlike(name, want[name], members[name])...)
		}
		if fits = got != nil; fits {
			return wrong
		}
	case string:
		text, _ := got.(string)
		patterns := []string{want}
		if name == "status" {
			patterns = strings.Split(want, "|")
		}
		fits = slices.ContainsFunc(patterns, func(pattern string) bool { return transcript.Text(pattern, text) })
		fits = fits || want == "!0" && got != 0.0
	case bool:
		fits = (got != nil) == want
	case float64:
		list, _ := got.([]any)
		n, _ := got.(float64)
		fits = n+float64(len(list)) == want
	default:
		fits = got == want
	}
	if !fits {
		wrong = append(wrong, fmt.Sprintf("%s is %.300v, want %.300v", name, got, want))
	}
	return wrong
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
