package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// counter is a guest that counts its runs, and prints the number.
type counter struct {
	sandboxes.Guest
	request sandbox.KeepRequest
	runs    atomic.Int64
	end     sync.Once
	done    chan struct{}
}

func (g *counter) Run(context.Context, sandbox.Request, sandbox.Host) (sandbox.Result, error) {
	n := int(g.runs.Add(1))
	res := printed(fmt.Sprint(n))
	res.Kept = &sandbox.KeptState{State: sandbox.StateKept, Calls: n}
	return res, nil
}

func (g *counter) Done() <-chan struct{} { return g.done }

func (g *counter) Ended() (string, bool) { return "it was closed", true }

func (g *counter) Close() error {
	g.end.Do(func() { close(g.done) })
	return nil
}

// lasting gives a bridge sandboxes that last and their tools, and has their guests sent to made.
func lasting(t testing.TB, state string, made chan *counter) func(*bridge.Config) {
	return func(c *bridge.Config) {
		c.Sandboxes = sandboxes.New(sandboxes.Config{
			Keep: func(_ context.Context, r sandbox.KeepRequest) (sandboxes.Guest, error) {
				g := &counter{request: r, done: make(chan struct{})}
				made <- g
				return g, nil
			},
			Idle: time.Hour, MaxAge: 8 * time.Hour, Most: 12, LongestCall: time.Minute,
			Limits: runtime.Limits{Memory: 512 << 20, CPUs: 2},
		})
		t.Cleanup(c.Sandboxes.Close)
		c.State, c.Offer = state, bridge.ToolNames()
	}
}

// tool has a principal call a tool, and returns what it is answered.
func tool(t testing.TB, e era, who, name, args string) string {
	t.Helper()
	status, got := e.call(who, "tools/call", name, fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
	if len(got) == 0 {
		t.Fatalf("%s: %d without an answer", name, status)
	}
	last := got[len(got)-1]
	return fmt.Sprintf("%d %s %+v", status, last.Result, last.Error)
}

var inSandbox = regexp.MustCompile(`\[sandbox ([a-z0-9]+)[:,]`)

// TestForeignSandboxes has bob use the id of a sandbox of alice's in each tool that takes one. What
// he is answered is what he is for an id that there never was, and alice's sandbox is as it was.
func TestForeignSandboxes(t *testing.T) {
	made := make(chan *counter, 16)
	s := newTeam(t, lasting(t, bridge.StateNone, made))
	for _, e := range s.eras() {
		t.Run(e.name, func(t *testing.T) {
			begun := inSandbox.FindStringSubmatch(tool(t, e, "alice", "run_python", `{"code":"1","sandbox":"new"}`))
			if begun == nil {
				t.Fatal("none was begun")
			}
			id, guest := begun[1], <-made
			if guest.request.Principal != "alice" {
				t.Errorf("its runs are of the share of %q", guest.request.Principal)
			}
			for _, c := range []struct{ tool, args string }{
				{"run_python", `{"code":"1","sandbox":"ID"}`},
				{"sandbox_update", `{"sandbox_id":"ID","metadata":{"of":"bob"}}`},
				{"sandbox_info", `{"sandbox_id":"ID"}`},
				{"sandbox_undo", `{"sandbox_id":"ID"}`},
				{"sandbox_pause", `{"sandbox_id":"ID"}`},
				{"sandbox_resume", `{"sandbox_id":"ID"}`},
				{"sandbox_kill", `{"sandbox_id":"ID"}`},
				{"sandbox_exec", `{"sandbox_id":"ID","command":"true"}`},
				{"sandbox_files_read", `{"sandbox_id":"ID","path":"a"}`},
				{"sandbox_files_write", `{"sandbox_id":"ID","path":"a","content":"b"}`},
				{"sandbox_files_list", `{"sandbox_id":"ID","path":"."}`},
				{"sandbox_files_download_dir", `{"sandbox_id":"ID","path":"."}`},
				{"sandbox_list", `{}`},
			} {
				ask := func(id string) string {
					said := tool(t, e, "bob", c.tool, strings.ReplaceAll(c.args, "ID", id))
					return strings.ReplaceAll(said, id, "ID")
				}
				if foreign, none := ask(id), ask("zzzz"); foreign != none {
					t.Errorf("%s: bob is told\n%.500s\nof alice's, and\n%.500s\nof none", c.tool, foreign, none)
				}
			}
			// Each of her sessions, of both eras, may use it.
			again := append([]era{e}, s.eras()...)
			for i, e := range again {
				got := tool(t, e, "alice", "run_python", fmt.Sprintf(`{"code":"1","sandbox":%q}`, id))
				if !strings.Contains(got, fmt.Sprintf("[sandbox %s, call %d]", id, i+2)) {
					t.Errorf("alice's own, by %s: %s", e.name, got)
				}
			}
			if list := tool(t, e, "alice", "sandbox_list", `{}`); !strings.Contains(list, id) {
				t.Errorf("alice has %s", list)
			}
		})
	}
}

// TestSandboxesOfSessions: a sandbox that is a session's own ends when that does; one that was
// begun in it is its principal's.
func TestSandboxesOfSessions(t *testing.T) {
	made := make(chan *counter, 16)
	s := newTeam(t, lasting(t, bridge.StateSession, made))
	call := func(session []string, args string) string {
		t.Helper()
		status, got, _ := s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python",`+
			`"arguments":`+args+`}}`, session...)
		if len(got) == 0 {
			t.Fatalf("%d without an answer", status)
		}
		return got[len(got)-1].text()
	}
	first := s.initialize(latest, `{}`, "X-Who: alice")
	second := s.initialize(latest, `{}`, "X-Who: alice")
	shared := inSandbox.FindStringSubmatch(call(first, `{"code":"1"}`))
	guest := <-made
	if other := inSandbox.FindStringSubmatch(call(second, `{"code":"1"}`)); shared == nil || other == nil ||
		shared[1] == other[1] {
		t.Fatalf("the sessions have the sandboxes %q and %q", shared, other)
	}
	<-made
	own := inSandbox.FindStringSubmatch(call(first, `{"code":"1","sandbox":"new"}`))
	begun := <-made
	if got := call(first, `{"code":"1"}`); !strings.HasPrefix(got, "2") {
		t.Errorf("the second call of a session: %s", got)
	}
	if r := s.do(t.Context(), http.MethodDelete, "", first...); r.StatusCode != http.StatusNoContent {
		t.Fatalf("the end of the session: %d", r.StatusCode)
	}
	<-guest.Done()
	if got := call(second, fmt.Sprintf(`{"code":"1","sandbox":%q}`, own[1])); !strings.HasPrefix(got, "2") {
		t.Errorf("what was begun in the session that has ended: %s", got)
	}
	if got := call(second, fmt.Sprintf(`{"code":"1","sandbox":%q}`, shared[1])); !strings.Contains(got,
		"has ended: its session is over") {
		t.Errorf("what was the session's own: %s", got)
	}
	select {
	case <-begun.Done():
		t.Error("a principal's sandbox has ended with a session")
	default:
	}
	modern := s.eras()[1] // without sessions
	for i := range 2 {
		if got := tool(t, modern, "alice", "run_python", `{"code":"1"}`); !strings.Contains(got, fmt.Sprintf(`"%d\n`, i+1)) {
			t.Errorf("call %d of a client without sessions: %s", i+1, got)
		}
	}
}
