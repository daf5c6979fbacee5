package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// hostileKept is an answer to a call in a sandbox.
type hostileKept struct {
	hostileGot
	Call    string `json:"call"`
	Sandbox struct {
		ID    string `json:"id"`
		State string `json:"state"`
	} `json:"sandbox"`
}

// sandboxed calls run_python in a sandbox of a bridge whose answers are structured.
func (c *client) sandboxed(code, sandbox string, timeout int) (got hostileKept) {
	c.t.Helper()
	m := c.request("tools/call", map[string]any{"name": "run_python", "arguments": map[string]any{
		"code": code, "timeout": timeout, "servers": []string{"shop"}, "sandbox": sandbox,
	}})
	var r struct{ StructuredContent hostileKept }
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil {
		c.t.Errorf("JSON-RPC error %v: %.500s", m.Error, m.Result)
	}
	return r.StructuredContent
}

// recorded checks that the audit log has one line for a run, which says what its answer says, and
// one for each of its calls.
func (got hostileKept) recorded(t *testing.T, log, sandbox string) {
	t.Helper()
	text, err := os.ReadFile(log)
	must(t, err)
	type line struct {
		Kind, Run, Outcome, Sandbox string
		Calls                       int
	}
	var ended []line
	calls := 0
	for text := range bytes.Lines(text) {
		var l line
		must(t, json.Unmarshal(text, &l))
		switch {
		case l.Run != got.Call:
		case l.Kind == "run":
			ended = append(ended, l)
		default:
			calls++
		}
	}
	want := line{Kind: "run", Run: got.Call, Outcome: got.Status, Sandbox: sandbox, Calls: calls}
	if len(ended) != 1 || ended[0] != want || got.Calls != calls {
		t.Errorf("%d calls; the log has %+v, want %+v", got.Calls, ended, want)
	}
}

// canary is a call that comes after a hostile one.
const canary = "print(6 * 7, mcp_shop.add(a=1, b=9007199254740993)[\"sum\"])"

// TestHostileTwice runs every program of testdata/hostile twice in a sandbox, and a canary then.
// An interpreter that a program has broken stays so, which its comment says; but no answer, number
// of calls, output or line of the audit log of a call may be another call's, or the program's own
// word. Every second one, and those that need the machine for themselves, come only with
// MCP_BRIDGE_TEST_LONG=1.
func TestHostileTwice(t *testing.T) {
	needEngine(t)
	log := filepath.Join(t.TempDir(), "audit.log")
	program := func() *exec.Cmd {
		return with(command(t, map[string]entry{"shop": shop(t), "other": shop(t)}),
			"MCP_BRIDGE_OUTPUT_MODE=structured", "MCP_BRIDGE_LOG_LEVEL=error", "MCP_BRIDGE_AUDIT="+log,
			"MCP_BRIDGE_TOOLS=all", "MCP_BRIDGE_SANDBOX_IDLE=2h",
			fmt.Sprintf("MCP_BRIDGE_MAX_TIMEOUT=%d", patience))
	}
	all := serve(t, program())
	neighbour := all.sandboxed("secret = 'the neighbour'", "new", patience).Sandbox.ID
	try := func(t *testing.T, c *client, p hostile) {
		t.Run(p.name, func(t *testing.T) {
			if p.name == "calls_that_never_return" {
				c = serve(t, program()) // it leaves a server that answers no more
			}
			first, again, next := p.want, p.again, p.next
			if p.kept != nil {
				first = p.kept
			}
			if again == nil {
				again = first
			}
			if next == nil {
				next = map[string]any{"status": "ok", "stdout": "42 9007199254740994\n", "stderr": "", "calls": 1.0,
					"artifacts": 0.0, "error": nil, "truncated": false}
			}
			in := c.sandboxed("pass", "new", patience).Sandbox.ID
			for _, step := range []struct {
				code    string
				timeout int
				want    map[string]any
			}{{p.code, p.timeout, first}, {p.code, p.timeout, again}, {canary, patience, next}} {
				got := c.sandboxed(step.code, in, step.timeout)
				check(t, step.want, got.hostileGot)
				got.recorded(t, log, in)
				if got.Sandbox.State == "lost" {
					t.Log("the sandbox is lost")
					in = c.sandboxed("pass", "new", patience).Sandbox.ID
				}
			}
			c.tool("sandbox_kill", map[string]any{"sandbox_id": in})
		})
	}
	programs := loadHostile(t)
	queue := make(chan hostile, len(programs))
	var alone []hostile
	long := os.Getenv("MCP_BRIDGE_TEST_LONG") != ""
	for i, p := range programs {
		switch {
		case testing.Short() && i%16 != 0, !long && i%2 != 0:
		case p.alone:
			if long {
				alone = append(alone, p)
			}
		default:
			queue <- p
		}
	}
	close(queue)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for p := range queue {
				try(t, all, p)
			}
		})
	}
	wg.Wait()
	t.Run("alone", func(t *testing.T) {
		c := serve(t, plain(t, program())) // with the race detector they take minutes
		for _, p := range alone {
			try(t, c, p)
		}
	})
	got := all.sandboxed("print(secret)", neighbour, patience)
	if got.Stdout != "the neighbour\n" || got.Sandbox.State != "kept" {
		t.Errorf("another sandbox: %+v", got)
	}
}
