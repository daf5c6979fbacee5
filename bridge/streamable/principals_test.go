package streamable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// secret is in all that alice's runs leave.
const secret = "what only alice may read"

// byHeader finds out who sends a request, as a test says it.
func byHeader(r *http.Request) (string, error) {
	if who := r.Header.Get("X-Who"); who != "" {
		return who, nil
	}
	return "", &streamable.Refusal{Status: http.StatusUnauthorized, WWWAuthenticate: "Bearer",
		Message: "who are you?"}
}

// shop has one server with one tool.
type shop struct{ upstreams }

func (shop) Tools(context.Context, string) ([]upstream.Tool, error) {
	return []upstream.Tool{{Name: "buy"}}, nil
}

func (shop) Call(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"content":[{"type":"text","text":"bought"}]}`), nil
}

// team is a bridge that alice and bob use.
type team struct {
	*served
	waiting chan struct{}   // takes a value of each run that waits
	release chan struct{}   // and gives it one when it may end well
	grants  map[string]bool // who has allowed a tool for good
	mu      sync.Mutex
}

// Granted implements elicit.Grants.
func (s *team) Granted(g policy.Grant) (policy.Grant, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g, s.grants[g.Principal]
}

// Grant implements elicit.Grants.
func (s *team) Grant(g policy.Grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants[g.Principal] = true
	return nil
}

// run prints much and hands over a file, waits until it is released or cancelled, or asks its user.
func (s *team) run(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error) {
	switch r.Code {
	case "wait":
		s.waiting <- struct{}{}
		select {
		case <-s.release:
			if ctx.Err() != nil {
				return sandbox.Result{Status: sandbox.StatusCancelled}, nil
			}
			return printed("released"), nil
		case <-ctx.Done():
			return sandbox.Result{Status: sandbox.StatusCancelled}, nil
		}
	case "buy":
		_, err := h.Call(ctx, sandbox.Call{Provider: "shop", Tool: "buy"})
		return printed(fmt.Sprint(err)), nil
	}
	res := printed(strings.Repeat(secret+"\n", 2000))
	res.Artifacts = []sandbox.Artifact{{Name: "secret.txt", Mime: "text/plain", Data: []byte(secret)}}
	return res, nil
}

const askFirst = `
default = "ask"
[[rule]]
who = ["carol"]
tools = ["*.*"]
verdict = "deny"
[[rule]]
who = ["dave"]
tools = ["*.*"]
verdict = "allow"
`

func newTeam(t testing.TB, changes ...func(*bridge.Config)) *team {
	t.Helper()
	rules, err := policy.Parse("policy.toml", []byte(askFirst))
	if err != nil {
		t.Fatal(err)
	}
	s := &team{waiting: make(chan struct{}), release: make(chan struct{}), grants: map[string]bool{}}
	cfg := bridge.Config{
		Runner: runner(s.run), Upstreams: shop{}, Timeout: 30 * time.Second, MaxTimeout: 120 * time.Second,
		Servers: []discovery.Server{{Name: "shop", Command: "shop", Transport: discovery.Stdio}},
		Policy:  rules, Grants: s,
	}
	for _, change := range changes {
		change(&cfg)
	}
	b, err := bridge.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.served = &served{t: t, bridge: b}
	s.serve(streamable.Config{Log: slog.New(slog.DiscardHandler), Replica: cfg.Replica})
	return s
}

// serve serves the team, as cfg says, until the end of the test.
func (s *team) serve(cfg streamable.Config) {
	cfg.Clients, cfg.Hosts, cfg.Authenticate = s.bridge.Clients(), streamable.Loopback, byHeader
	h := streamable.New(cfg)
	server := httptest.NewServer(h)
	s.t.Cleanup(func() {
		h.Close()
		server.CloseClientConnections()
		server.Close()
	})
	s.h, s.url, s.client = h, server.URL+streamable.Path, server.Client()
}

// an era is how a client speaks: with sessions, or without.
type era struct {
	name string
	// call returns the status and the answer of a request of who's.
	call func(who, method, name, params string) (int, []message)
	// send sends a notification.
	send func(who, method, params string) int
}

// eras returns both for clients that can be asked.
func (s *team) eras() []era {
	sessions := map[string][]string{}
	session := func(who string) []string {
		if sessions[who] == nil {
			sessions[who] = s.initialize(latest, `{"elicitation":{}}`, "X-Who: "+who)
		}
		return sessions[who]
	}
	body := func(id, method, params string) string {
		return `{"jsonrpc":"2.0",` + id + `"method":"` + method + `","params":` + params + `}`
	}
	meta := strings.Replace(metaOf(""), `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1)
	with := func(params string) string {
		return strings.TrimSuffix(strings.TrimSuffix(params, "}"), ",") +
			map[bool]string{true: "", false: ","}[params == "{}"] + `"_meta":` + meta + `}`
	}
	return []era{{
		name: latest,
		call: func(who, method, _, params string) (int, []message) {
			status, got, _ := s.post(body(`"id":7,`, method, params), session(who)...)
			return status, got
		},
		send: func(who, method, params string) int {
			status, _, _ := s.post(body("", method, params), session(who)...)
			return status
		},
	}, {
		name: modern,
		call: func(who, method, name, params string) (int, []message) {
			headers := append(standard(method, name), "X-Who: "+who)
			status, got, _ := s.post(body(`"id":7,`, method, with(params)), headers...)
			return status, got
		},
		send: func(who, method, params string) int {
			headers := append(standard(method, ""), "X-Who: "+who)
			status, _, _ := s.post(body("", method, with(params)), headers...)
			return status
		},
	}}
}

// code returns the parameters of a call of run_python.
func code(source string) string {
	return fmt.Sprintf(`{"name":"run_python","arguments":{"code":%q}}`, source)
}

// keptRun has a principal run code, and returns the id of the run, whose output is cut.
func keptRun(t testing.TB, e era, who string) string {
	t.Helper()
	_, got := e.call(who, "tools/call", "run_python", code("print"))
	if len(got) == 0 {
		t.Fatal("there is no answer")
	}
	answer := string(got[len(got)-1].Result)
	_, after, _ := strings.Cut(answer, "mcp-bridge://runs/")
	run, _, found := strings.Cut(after, "/")
	if !found || !strings.Contains(answer, "read_output") {
		t.Fatalf("nothing is kept: %.300s", answer)
	}
	return run
}

// TestForeignIDs has bob use each id of alice's in each method that takes one. What he is answered
// is what he is for an id that there never was.
func TestForeignIDs(t *testing.T) {
	s := newTeam(t)
	for _, e := range s.eras() {
		t.Run(e.name, func(t *testing.T) {
			run := keptRun(t, e, "alice")
			own := keptRun(t, e, "bob")
			unknown := strings.Repeat("0", len(run))
			read := func(who, id string) string {
				_, got := e.call(who, "tools/call", "read_output", `{"name":"read_output","arguments":{"run":"`+id+`"}}`)
				return fmt.Sprintf("%+v %s", got, got[0].text())
			}
			if got := read("alice", run); !strings.Contains(got, secret) {
				t.Fatalf("alice reads %.300s", got)
			}
			for _, c := range []struct{ name, method, of, params string }{
				{"output", "tools/call", "read_output", `{"name":"read_output","arguments":{"run":"ID"}}`},
				{"file", "resources/read", "mcp-bridge://runs/ID/secret.txt",
					`{"uri":"mcp-bridge://runs/ID/secret.txt"}`},
				{"other file", "resources/read", "mcp-bridge://runs/ID/x", `{"uri":"mcp-bridge://runs/ID/x"}`},
				{"run", "completion/complete", "mcp-bridge://runs/{run}/{+name}", `{"ref":{"type":"ref/resource",` +
					`"uri":"mcp-bridge://runs/{run}/{+name}"},"argument":{"name":"run","value":"ID"}}`},
				{"name", "completion/complete", "mcp-bridge://runs/{run}/{+name}", `{"ref":{"type":"ref/resource",` +
					`"uri":"mcp-bridge://runs/{run}/{+name}"},"argument":{"name":"name","value":""},` +
					`"context":{"arguments":{"run":"ID"}}}`},
				{"list", "resources/list", "", `{}`},
			} {
				ask := func(id string) string {
					of, params := strings.ReplaceAll(c.of, "ID", id), strings.ReplaceAll(c.params, "ID", id)
					status, got := e.call("bob", c.method, of, params)
					if len(got) == 0 {
						t.Fatalf("%s: %d without an answer", c.name, status)
					}
					last := got[len(got)-1]
					said := fmt.Sprintf("%d %s %+v", status, last.Result, last.Error)
					if id != own && (strings.Contains(said, run) && c.name == "list" || strings.Contains(said, secret)) {
						t.Errorf("%s: bob is told %.300s", c.name, said)
					}
					return strings.ReplaceAll(said, id, "ID")
				}
				if foreign, none := ask(run), ask(unknown); foreign != none {
					t.Errorf("%s: bob is told\n%.500s\nof alice's, and\n%.500s\nof none", c.name, foreign, none)
				}
				if c.name == "output" || c.name == "file" {
					if got := ask(own); !strings.Contains(got, secret) {
						t.Errorf("%s: of his own bob is told %.300s", c.name, got)
					}
				}
			}
		})
	}
}

// TestForeignCancels has others cancel a call of alice's, by the id that it has: bob, and clients
// that say who they are as she does, in sessions of their own or without one.
func TestForeignCancels(t *testing.T) {
	s := newTeam(t)
	for _, e := range s.eras() {
		ended := make(chan []message, 1)
		go func() {
			_, got := e.call("alice", "tools/call", "run_python", code("wait"))
			ended <- got
		}()
		<-s.waiting
		s.cancelAsOthers("7", `"7"`, "1", "0")
		select {
		case got := <-ended:
			t.Errorf("%s: alice's call is answered with %+v", e.name, got)
		case s.release <- struct{}{}:
			if got := <-ended; len(got) != 1 || got[0].text() != "released" {
				t.Errorf("%s: alice's call is answered with %+v", e.name, got)
			}
		}
	}
	e := s.eras()[0]
	ended := make(chan []message, 1)
	go func() {
		_, got := e.call("alice", "tools/call", "run_python", code("wait"))
		ended <- got
	}()
	<-s.waiting
	e.send("alice", "notifications/cancelled", `{"requestId":7}`)
	if got := <-ended; len(got) != 0 {
		t.Errorf("alice's call that she has cancelled is answered with %+v", got)
	}
}

// cancelAsOthers has clients cancel requests that aren't theirs.
func (s *team) cancelAsOthers(ids ...string) {
	s.t.Helper()
	for _, who := range []string{"bob", "alice"} {
		for _, e := range s.eras() { // each era's client has a session of its own
			for _, id := range ids {
				status := e.send(who, "notifications/cancelled", `{"requestId":`+id+`}`)
				if status != http.StatusAccepted {
					s.t.Errorf("%s: %s's cancel is answered with %d", e.name, who, status)
				}
			}
		}
	}
}

// TestForeignSubscriptions has the others cancel a subscription of alice's, which goes on.
func TestForeignSubscriptions(t *testing.T) {
	s := newTeam(t)
	news := eventsOf(
		t,
		s.do(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen",`+
			`"params":{"notifications":{"toolsListChanged":true},"_meta":`+metaOf("")+`}}`,
			append(standard("subscriptions/listen", ""), "X-Who: alice")...),
	)
	if m, ok := news.next(); !ok || m.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("it begins with %+v", m)
	}
	s.cancelAsOthers("7", `"7"`)
	s.changeTools()
	if m, ok := news.next(); !ok || m.Method != "notifications/tools/list_changed" {
		t.Errorf("alice hears %+v, %v", m, ok)
	}
}

// TestForeignSessions has bob use the id of a session of alice's.
func TestForeignSessions(t *testing.T) {
	s := newTeam(t)
	alice := s.initialize(latest, `{"elicitation":{}}`, "X-Who: alice")
	mine := s.initialize(latest, `{}`, "X-Who: bob")
	theirs := append(append([]string{}, alice...), "X-Who: bob")
	none := append(append([]string{}, theirs...), "Mcp-Session-Id: "+strings.Repeat("A", 26))
	stream := s.do(t.Context(), http.MethodGet, "", append(alice, "Accept: text/event-stream")...)
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("alice's stream: %d", stream.StatusCode)
	}
	for name, c := range map[string]struct{ method, body, accept string }{
		"ping": {http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, ""},
		"call": {http.MethodPost, run(1, "print", ""), ""},
		"cancel": {http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
			""},
		"answer": {http.MethodPost, `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`, ""},
		"another": {http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` +
			`"protocolVersion":"2025-11-25"}}`, ""},
		"stream":  {http.MethodGet, "", "text/event-stream"},
		"resumed": {http.MethodGet, "", "text/event-stream"},
		"end":     {http.MethodDelete, "", ""},
	} {
		answers := [2]string{}
		for i, headers := range [][]string{theirs, none} {
			if c.accept != "" {
				headers = append(headers, "Accept: "+c.accept)
			}
			if name == "resumed" {
				headers = append(headers, "Last-Event-ID: 0-0")
			}
			r := s.do(t.Context(), c.method, c.body, headers...)
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			answers[i] = fmt.Sprintf("%d %s", r.StatusCode, body)
			if r.StatusCode != http.StatusNotFound {
				t.Errorf("%s: bob is answered %s", name, answers[i])
			}
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: bob is told %s of alice's, and %s of none", name, answers[0], answers[1])
		}
	}
	for who, session := range map[string][]string{"alice": alice, "bob": mine} {
		if status, _, _ := s.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, session...); status != http.StatusOK {
			t.Errorf("%s's own session is answered %d", who, status)
		}
	}
	if status, _, header := s.post(
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusUnauthorized ||
		header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("without a principal: %d", status)
	}
}

// TestForeignQuestions has bob answer a question that alice is asked.
func TestForeignQuestions(t *testing.T) {
	s := newTeam(t)
	e := s.eras()[1]
	var asked struct {
		State    string                     `json:"requestState"`
		Requests map[string]json.RawMessage `json:"inputRequests"`
	}
	_, got := e.call("alice", "tools/call", "run_python", code("buy"))
	if len(got) != 1 || json.Unmarshal(got[0].Result, &asked) != nil || asked.State == "" {
		t.Fatalf("alice isn't asked: %+v", got)
	}
	answer := func(who, state, answer string) string {
		answers := map[string]any{}
		for key := range asked.Requests {
			answers[key] = map[string]any{"action": "accept", "content": map[string]any{"answer": answer}}
		}
		raw, err := json.Marshal(answers)
		if err != nil {
			t.Fatal(err)
		}
		_, got := e.call(who, "tools/call", "run_python",
			fmt.Sprintf(`{"name":"run_python","arguments":{"code":"buy"},`+
				`"requestState":%q,"inputResponses":%s}`, state, raw))
		if len(got) == 0 {
			t.Fatal("there is no answer")
		}
		return fmt.Sprintf("%s %+v", got[0].Result, got[0].Error)
	}
	if foreign, none := answer("bob", asked.State, "always"), answer("bob", "x", "always"); foreign != none ||
		!strings.Contains(none, "was not issued") {
		t.Errorf("bob is told\n%s\nof alice's, and\n%s\nof none", foreign, none)
	}
	if got := answer("alice", asked.State, "always"); !strings.Contains(got, "nil") {
		t.Errorf("alice is told %s", got)
	}
	// What alice allows for good, she alone does.
	if _, got := e.call("alice", "tools/call", "run_python", code("buy")); !strings.Contains(got[0].text(),
		"nil") {
		t.Errorf("alice is asked again: %+v", got)
	}
	for _, who := range []string{"bob", "local"} {
		_, got := e.call(who, "tools/call", "run_python", code("buy"))
		if !strings.Contains(string(got[0].Result), "input_required") {
			t.Errorf("%s isn't asked: %s", who, got[0].Result)
		}
	}
}

// TestRulesOfPrincipals: a rule holds for those that it is about.
func TestRulesOfPrincipals(t *testing.T) {
	s := newTeam(t)
	for _, e := range s.eras() {
		for who, want := range map[string]string{"carol": "may not be called, by rule", "dave": "nil"} {
			if _, got := e.call(who, "tools/call", "run_python", code("buy")); !strings.Contains(got[0].text(), want) {
				t.Errorf("%s: %s's call: %+v", e.name, who, got)
			}
		}
	}
}

// TestForeignNews: of files that alice's runs leave, bob isn't told.
func TestForeignNews(t *testing.T) {
	s := newTeam(t)
	e := s.eras()[0]
	heard := map[string]chan string{"alice": make(chan string, 8), "bob": make(chan string, 8)}
	for who, hears := range heard {
		session := s.initialize(latest, `{}`, "X-Who: "+who)
		news := eventsOf(t, s.do(t.Context(), http.MethodGet, "", append(session, "Accept: text/event-stream")...))
		go func() {
			for m, ok := news.next(); ok; m, ok = news.next() {
				hears <- m.Method
			}
		}()
	}
	const files, tools = "notifications/resources/list_changed", "notifications/tools/list_changed"
	for range 2 {
		keptRun(t, e, "alice")
		if got := arrives(t, heard["alice"]); got != files {
			t.Errorf("alice has heard %s", got)
		}
		s.changeTools() // of which each is told, after what came before
		for who, hears := range heard {
			if got := arrives(t, hears); got != tools {
				t.Errorf("%s has heard %s", who, got)
			}
		}
	}
	keptRun(t, e, "bob")
	if got := arrives(t, heard["bob"]); got != files {
		t.Errorf("bob has heard %s of his own", got)
	}
}
