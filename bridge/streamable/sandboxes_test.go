package streamable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/client"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
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
			Limits: runtime.Limits{Memory: 512 << 20, CPUs: 2}, Suffix: c.Replica.Suffix(),
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

var inSandbox = regexp.MustCompile(`\[sandbox ([a-z0-9.-]+)[:,]`)

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
		if got := tool(t, modern, "alice", "run_python", `{"code":"1"}`); !strings.Contains(got,
			fmt.Sprintf(`"%d\n`, i+1)) {
			t.Errorf("call %d of a client without sessions: %s", i+1, got)
		}
	}
}

// replicas returns two bridges, each of which marks its ids.
func replicas(t testing.TB) (west, east *team) {
	named := func(name client.Replica) *team {
		return newTeam(t, func(c *bridge.Config) { c.Replica = name },
			lasting(t, bridge.StateNone, make(chan *counter, 16)))
	}
	return named("west"), named("east-2")
}

// TestMisdirected: an id of another replica is answered with its name; one of this replica that
// isn't there, and one of no replica, as ever.
func TestMisdirected(t *testing.T) {
	west, east := replicas(t)
	of, at := west.eras()[1], east.eras()[1]
	begun := inSandbox.FindStringSubmatch(tool(t, of, "alice", "run_python", `{"code":"1","sandbox":"new"}`))
	if begun == nil || !strings.HasSuffix(begun[1], ".west") {
		t.Fatalf("the sandbox %q was begun", begun)
	}
	asks := west.asked(t)
	run := keptRun(t, of, "alice")
	if !strings.HasSuffix(run, ".west") {
		t.Errorf("a run is called %s", run)
	}
	file := "mcp-bridge://runs/" + run + "/secret.txt"
	for _, c := range []struct{ method, name, params string }{
		{"tools/call", "run_python", `{"name":"run_python","arguments":{"code":"1","sandbox":"` + begun[1] + `"}}`},
		{"tools/call", "sandbox_info", `{"name":"sandbox_info","arguments":{"sandbox_id":"` + begun[1] + `"}}`},
		{"tools/call", "sandbox_kill", `{"name":"sandbox_kill","arguments":{"sandbox_id":"` + begun[1] + `"}}`},
		{"tools/call", "read_output", `{"name":"read_output","arguments":{"run":"` + run + `"}}`},
		{"resources/read", file, `{"uri":"` + file + `"}`},
		{"tools/call", "run_python", `{"name":"run_python","arguments":{"code":"buy"},"requestState":"` + asks +
			`"}`},
	} {
		status, header, got := east.modernly("alice", c.method, c.name, c.params)
		if status != http.StatusMisdirectedRequest || header.Get("Mcp-Bridge-Replica") != "west" || len(got) != 1 ||
			got[0].Error == nil || got[0].Error.Code != client.CodeMisdirected || string(got[0].ID) != "7" ||
			!strings.Contains(got[0].Error.Message, "replica west") {
			t.Errorf("%s %s: %d, %v, %+v", c.method, c.params, status, header, got)
		}
		if c.name == "sandbox_kill" {
			continue
		}
		if status, _, got := west.modernly("alice", c.method, c.name, c.params); status != http.StatusOK {
			t.Errorf("its own %s %s: %d, %+v", c.method, c.params, status, got)
		}
	}
	for id, want := range map[string]string{
		"zzzz.east-2": "you have no sandbox", "zzzz": "you have no sandbox", "zzzz.": "you have no sandbox",
		"zzzz.WEST": "you have no sandbox", `zzzz.west\r\nX: y`: "you have no sandbox",
	} {
		if got := tool(t, at, "alice", "sandbox_info", `{"sandbox_id":"`+id+`"}`); !strings.Contains(got, want) {
			t.Errorf("%q: %s", id, got)
		}
	}
}

// TestMisdirectedSession: a session is of one replica, and what it asks of another's isn't there.
func TestMisdirectedSession(t *testing.T) {
	west, east := replicas(t)
	session := west.initialize(latest, `{}`, "X-Who: alice")
	if !strings.HasSuffix(session[0], ".west") {
		t.Errorf("its id is %s", session[0])
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		body := map[string]string{http.MethodPost: `{"jsonrpc":"2.0","id":1,"method":"ping"}`}[method]
		r := east.do(t.Context(), method, body, session...)
		if r.StatusCode != http.StatusMisdirectedRequest || r.Header.Get("Mcp-Bridge-Replica") != "west" {
			t.Errorf("%s: %d, %v", method, r.StatusCode, r.Header)
		}
	}
	unknown := append([]string{"Mcp-Session-Id: AAAA.east-2"}, session[1:]...)
	if status, _, header := east.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, unknown...); status != 404 ||
		header.Get("Mcp-Bridge-Replica") != "" {
		t.Errorf("one that has ended: %d, %v", status, header)
	}
	mine := inSandbox.FindStringSubmatch(tool(t, west.eras()[0], "alice", "run_python",
		`{"code":"1","sandbox":"new"}`))
	got := tool(t, east.eras()[0], "alice", "sandbox_info", `{"sandbox_id":"`+mine[1]+`"}`)
	if !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "is of the replica west") {
		t.Errorf("a sandbox of another replica, in a session: %s", got)
	}
}

// TestReplicas has clients of both eras call through a proxy that knows the replicas' names, begins
// with any of them, and sends on what is answered with 421.
func TestReplicas(t *testing.T) {
	west, east := replicas(t)
	all := map[string]*team{"west": west, "east-2": east}
	var turn, moved atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		to := []*team{west, east}[turn.Add(1)%2]
		for range 2 {
			var headers []string
			for name := range r.Header {
				headers = append(headers, name+": "+r.Header.Get(name))
			}
			got := to.do(r.Context(), r.Method, string(body), headers...)
			if got.StatusCode == http.StatusMisdirectedRequest {
				moved.Add(1)
				to = all[got.Header.Get("Mcp-Bridge-Replica")]
				continue
			}
			for name := range got.Header {
				w.Header().Set(name, got.Header.Get(name))
			}
			w.WriteHeader(got.StatusCode)
			_, _ = io.Copy(w, got.Body)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	in := &team{served: &served{t: t, url: proxy.URL + streamable.Path, client: proxy.Client()}}
	for _, e := range in.eras() {
		var ids []string
		for range 4 {
			begun := inSandbox.FindStringSubmatch(tool(t, e, "alice", "run_python", `{"code":"1","sandbox":"new"}`))
			if begun == nil {
				t.Fatalf("%s: none was begun", e.name)
			}
			ids = append(ids, begun[1])
		}
		for call := range 3 {
			for _, id := range ids {
				got := tool(t, e, "alice", "run_python", fmt.Sprintf(`{"code":"1","sandbox":%q}`, id))
				if want := fmt.Sprintf("[sandbox %s, call %d]", id, call+2); !strings.Contains(got, want) {
					t.Errorf("%s: %s, want %s", e.name, got, want)
				}
			}
		}
	}
	if moved.Load() == 0 {
		t.Error("no request came to the wrong replica")
	}
}

// modernly sends a request of a client without sessions that can be asked.
func (s *team) modernly(who, method, name, params string) (int, http.Header, []message) {
	meta := strings.Replace(metaOf(""), `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s,"_meta":%s}}`, method,
		strings.TrimSuffix(params, "}"), meta)
	status, got, header := s.post(body, append(standard(method, name), "X-Who: "+who)...)
	return status, header, got
}

// asked has alice be asked, and returns the state with which the call goes on.
func (s *team) asked(t testing.TB) string {
	t.Helper()
	_, _, got := s.modernly("alice", "tools/call", "run_python", code("buy"))
	var asked struct{ RequestState string }
	if len(got) == 0 || json.Unmarshal(got[len(got)-1].Result, &asked) != nil ||
		!strings.HasSuffix(asked.RequestState, ".west") {
		t.Fatalf("alice isn't asked: %+v", got)
	}
	return asked.RequestState
}
