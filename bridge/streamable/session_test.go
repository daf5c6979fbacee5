package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// within ends a wait that would go on for ever.
const within = time.Minute

// arrives returns what a channel holds, or fails.
func arrives[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(within):
		t.Fatal("nothing came")
	}
	panic("unreachable")
}

// users has a request belong to whom its header says.
func users(c *streamable.Config) {
	c.Authenticate = func(r *http.Request) (string, error) {
		name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			return "", &streamable.Refusal{
				Status: http.StatusUnauthorized, WWWAuthenticate: "Bearer", Message: "no token",
			}
		}
		return name, nil
	}
}

// hanging is code that runs until its call ends, or the test says.
type hanging struct {
	began chan string   // its text
	over  chan error    // which was ended, and why
	done  chan struct{} // ends it well
}

func newHanging() *hanging {
	return &hanging{make(chan string, 100), make(chan error, 100), make(chan struct{}, 100)}
}

func (h *hanging) run(ctx context.Context, r sandbox.Request, host sandbox.Host) (sandbox.Result, error) {
	if r.Code == "echo" {
		return echo(ctx, r, host)
	}
	h.began <- r.Code
	select {
	case <-ctx.Done():
		h.over <- fmt.Errorf("%s: %w", r.Code, context.Cause(ctx))
		return sandbox.Result{}, context.Cause(ctx)
	case <-h.done:
		return printed("done " + r.Code), nil
	}
}

// TestForeignSession: whatever is done with the id of another principal's session, or of none, has
// no effect, and is told as unknown; nor has a request that names another session's call.
func TestForeignSession(t *testing.T) {
	code := newHanging()
	s := serve(t, code.run, users)
	alice := s.initialize(latest, `{}`, "Authorization: Bearer alice")
	bob := s.initialize(latest, `{}`, "Authorization: Bearer bob")
	other := s.initialize(latest, `{}`, "Authorization: Bearer alice")
	answered := make(chan message, 1)
	go func() {
		if _, got, _ := s.post(run(1, "alice's", ""), alice...); len(got) > 0 {
			answered <- got[len(got)-1]
		}
	}()
	arrives(t, code.began)

	id := strings.TrimPrefix(alice[0], "Mcp-Session-Id: ")
	for _, who := range []struct {
		name    string
		headers []string
		status  int // of what names a session
	}{
		{"another principal", []string{"Authorization: Bearer bob", "Mcp-Session-Id: " + id}, 404},
		{"an unknown id", []string{"Authorization: Bearer alice", "Mcp-Session-Id: " + strings.ToLower(id)}, 404},
		{"no id", []string{"Authorization: Bearer alice"}, 400},
		{"no token", []string{"Mcp-Session-Id: " + id}, 401},
	} {
		for _, what := range []struct{ method, body string }{
			{"DELETE", ""},
			{"GET", ""},
			{"POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`},
			{"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
			{"POST", `{"jsonrpc":"2.0","id":1,"result":{}}`},
			{"POST", `{"jsonrpc":"2.0","id":9,"method":"ping"}`},
			{"POST", `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`},
			{"POST", `{"jsonrpc":"2.0","id":9,"method":"resources/list"}`},
			{"POST", `{"jsonrpc":"2.0","id":9,"method":"resources/templates/list"}`},
			{"POST", `{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"x:y"}}`},
			{"POST", `{"jsonrpc":"2.0","id":9,"method":"prompts/list"}`},
			{"POST", `{"jsonrpc":"2.0","id":9,"method":"prompts/get","params":{"name":"x"}}`},
			{"POST", `{"jsonrpc":"2.0","id":9,"method":"completion/complete","params":{}}`},
			{"POST", run(9, "foreign", "")},
		} {
			r := s.do(t.Context(), what.method, what.body, append([]string{"Last-Event-ID: 1-0"}, who.headers...)...)
			if got := all(t, r); r.StatusCode != who.status || len(got) > 0 && got[0].Result != nil {
				t.Errorf("%s, %s %s: %d %+v", who.name, what.method, what.body, r.StatusCode, got)
			}
		}
	}
	// In sessions of their own, the id of the call means nothing.
	for _, session := range [][]string{bob, other} {
		for _, body := range []string{
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`,
		} {
			if status, _, _ := s.post(body, session...); status != http.StatusAccepted {
				t.Errorf("%s: %d", body, status)
			}
		}
		r := s.do(t.Context(), "GET", "", append([]string{"Last-Event-ID: 1-0"}, session...)...)
		if r.StatusCode != http.StatusBadRequest {
			t.Errorf("another session's stream: %d", r.StatusCode)
		}
	}
	// Nor do requests without a session.
	for _, token := range []string{"Authorization: Bearer alice", "Authorization: Bearer bob"} {
		s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"_meta":`+
			metaOf("")+`}}`, append(standard("notifications/cancelled", ""), token)...)
		status, got, _ := s.post(run(1, "echo", metaOf("")), append(standard("tools/call", "run_python"), token)...)
		if status != 200 || !strings.Contains(got[0].text(), "echo") {
			t.Errorf("the same id: %d %+v", status, got)
		}
	}
	select {
	case err := <-code.over:
		t.Fatalf("the call was ended: %v", err)
	default:
	}
	code.done <- struct{}{}
	if got := arrives(t, answered); !strings.Contains(got.text(), "done alice's") {
		t.Errorf("got %s", got.text())
	}
}

// TestCancel: a cancel in the same session ends the call, which gets no answer.
func TestCancel(t *testing.T) {
	code := newHanging()
	s := serve(t, code.run, nil)
	session := s.initialize(latest, `{}`)
	ended := make(chan []message, 1)
	go func() {
		_, got, _ := s.post(run(1, "x", ""), session...)
		ended <- got
	}()
	arrives(t, code.began)
	s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, session...)
	arrives(t, code.over)
	if got := arrives(t, ended); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}

// TestDelete: with a session, its calls and streams end, and its id is unknown.
func TestDelete(t *testing.T) {
	code := newHanging()
	s := serve(t, code.run, nil)
	session := s.initialize(latest, `{}`)
	stream := s.do(t.Context(), "GET", "", session...)
	if stream.StatusCode != 200 {
		t.Fatalf("GET: %d", stream.StatusCode)
	}
	ended := make(chan int, 1)
	go func() {
		status, _, _ := s.post(run(1, "x", ""), session...)
		ended <- status
	}()
	arrives(t, code.began)
	if r := s.do(t.Context(), "DELETE", "", session...); r.StatusCode != http.StatusNoContent {
		t.Fatalf("DELETE: %d", r.StatusCode)
	}
	arrives(t, code.over)
	arrives(t, ended)
	if got := all(t, stream); len(got) > 0 {
		t.Errorf("the stream has %+v", got)
	}
	for method, body := range map[string]string{
		"DELETE": "", "GET": "", "POST": `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
	} {
		r := s.do(t.Context(), method, body, session...)
		if r.StatusCode != 404 {
			t.Errorf("%s afterwards: %d", method, r.StatusCode)
		}
	}
}

// TestDisconnect: a client of 2026-07-28 that goes ends its call, and not that of another one with
// the same id; one with a session doesn't end its own.
func TestDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := newHanging()
		s, _, end := bubble(t, code.run)
		session := s.initialize(latest, `{}`)
		ctx, hangUp := context.WithCancel(t.Context())
		gone := make(chan error, 2)
		post := func(body string, headers ...string) {
			r, _ := http.NewRequestWithContext(ctx, "POST", s.url, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			for _, h := range headers {
				name, value, _ := strings.Cut(h, ": ")
				r.Header.Set(name, value)
			}
			got, err := s.client.Do(r)
			if err == nil {
				_, err = io.Copy(io.Discard, got.Body)
				got.Body.Close()
			}
			gone <- err
		}
		go post(run(1, "old", ""), session...)
		go post(run(1, "new", metaOf("")), standard("tools/call", "run_python")...)
		answered := make(chan []message, 1)
		go func() {
			_, got, _ := s.post(run(1, "other", metaOf("")), standard("tools/call", "run_python")...)
			answered <- got
		}()
		for range 3 {
			<-code.began
		}
		hangUp()
		for range 2 {
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("a client that was to go has got its answer: %v", err)
			}
		}
		synctest.Wait()
		if len(code.over) != 1 {
			t.Errorf("%d of 3 calls were ended", len(code.over))
		}
		if err := <-code.over; !strings.HasPrefix(err.Error(), "new: ") {
			t.Errorf("another call was ended: %v", err)
		}
		code.done <- struct{}{}
		code.done <- struct{}{}
		if got := <-answered; len(got) == 0 || !strings.Contains(got[len(got)-1].text(), "done other") {
			t.Errorf("the other client has got %+v", got)
		}
		if synctest.Wait(); len(code.done) > 0 || len(code.over) > 0 {
			t.Error("the call of the client with a session was ended")
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestResume: the answer to a call whose POST was lost comes on a later stream, once its events
// have ids, and no event comes twice.
func TestResume(t *testing.T) {
	code := newHanging()
	s := serve(t, func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error) {
		r.Output(sandbox.Chunk{Stream: "stdout", Text: "first\n"})
		return code.run(ctx, r, h)
	}, nil)
	session := s.initialize(latest, `{}`)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	lost := eventsOf(t, s.do(ctx, "POST", run(1, "x", `{"progressToken":1}`), session...))
	first, ok := lost.next()
	if !ok || first.Method != "notifications/progress" || !strings.HasPrefix(first.event, "3-") {
		t.Fatalf("got %+v", first)
	}
	hangUp()
	resumed := append([]string{"Last-Event-ID: " + first.event}, session...)
	later := eventsOf(t, s.do(t.Context(), "GET", "", resumed...))
	code.done <- struct{}{}
	seen := map[string]bool{first.event: true}
	for {
		m, ok := later.next()
		if !ok {
			t.Fatal("the stream has ended without the answer")
		}
		if seen[m.event] {
			t.Errorf("%s came twice", m.event)
		}
		seen[m.event] = true
		if string(m.ID) == "1" {
			if !strings.Contains(m.text(), "done x") {
				t.Errorf("got %s", m.text())
			}
			break
		}
	}
	// It can be had again, and what isn't there is told.
	again := all(t, s.do(t.Context(), "GET", "", resumed...))
	if len(again) == 0 || string(again[len(again)-1].ID) != "1" {
		t.Errorf("again: %+v", again)
	}
	for _, id := range []string{"99-0", "x", "2", "2-x", "-1"} {
		r := s.do(t.Context(), "GET", "", append([]string{"Last-Event-ID: " + id}, session...)...)
		if r.StatusCode != http.StatusBadRequest {
			t.Errorf("after %q: %d", id, r.StatusCode)
		}
	}
}

// TestStandingStream: what belongs to no call comes on the stream of GET, of which there is one.
func TestStandingStream(t *testing.T) {
	s := serve(t, echo, nil)
	session := s.initialize(latest, `{}`)
	first := s.do(t.Context(), "GET", "", session...)
	second := s.do(t.Context(), "GET", "", session...)
	if got := all(t, first); len(got) > 0 { // which ends, since the second one has taken its place
		t.Errorf("got %+v", got)
	}
	s.changeTools()
	if m, _ := eventsOf(t, second).next(); m.Method != "notifications/tools/list_changed" || m.event != "0-1" {
		t.Errorf("got %+v", m)
	}
}

// TestListen: a subscription of 2026-07-28 is a stream.
func TestListen(t *testing.T) {
	s := serve(t, echo, nil)
	body := `{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":` +
		`{"toolsListChanged":true},"_meta":` + metaOf("") + `}}`
	var streams []*events
	for range 3 { // with one id, of several clients
		e := eventsOf(t, s.do(t.Context(), "POST", body, standard("subscriptions/listen", "")...))
		if m, _ := e.next(); m.Method != "notifications/subscriptions/acknowledged" || m.event != "" {
			t.Fatalf("got %+v", m)
		}
		streams = append(streams, e)
	}
	s.changeTools()
	for _, e := range streams {
		if m, _ := e.next(); m.Method != "notifications/tools/list_changed" ||
			!strings.Contains(string(m.Params), `"sub"`) {
			t.Errorf("got %+v", m)
		}
	}
}

// TestHeaders: what the headers of a request must say.
func TestHeaders(t *testing.T) {
	s := serve(t, echo, nil)
	session := s.initialize(latest, `{}`)
	list := `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`
	call := run(3, "echo", metaOf(""))
	with := func(header string) []string { return append([]string{header}, session...) }
	versioned := func(version string) []string {
		return []string{"MCP-Protocol-Version: " + version, "Mcp-Method: tools/call", "Mcp-Name: run_python"}
	}
	for _, tc := range []struct {
		name, method, body string
		headers            []string
		status, code       int
	}{
		{"well", "POST", list, session, 200, 0},
		{"another type", "POST", list, with("Content-Type: text/plain"), 415, -32000},
		{"no type", "POST", list, with("Content-Type: "), 415, -32000},
		{"a charset", "POST", list, with("Content-Type: application/json; charset=utf-8"), 200, 0},
		{"only JSON accepted", "POST", list, with("Accept: application/json"), 406, -32000},
		{"only HTML accepted", "GET", "", with("Accept: text/html"), 406, -32000},
		{"all accepted", "POST", list, with("Accept: */*"), 200, 0},
		{"no session", "POST", list, nil, 400, -32000},
		{"an unknown version", "POST", list, append(session[:1:1], "MCP-Protocol-Version: 2020-01-01"),
			400, -32000},
		{"no version", "POST", list, session[:1], 200, 0},
		{"a GET with a body", "GET", list, session, 400, -32000},
		{"no JSON", "POST", `{"jsonrpc"`, session, 400, -32700},
		{"no JSON and no session", "POST", `{`, nil, 400, -32700},
		{"a batch", "POST", `[` + list + `]`, session, 400, -32600},
		{"no message", "POST", `{"jsonrpc":"2.0"}`, session, 400, -32600},
		{"another method of HTTP", "PUT", list, session, 405, -32000},
		{"unknown", "POST", `{"jsonrpc":"2.0","id":3,"method":"no/such"}`, session, 200, -32601},

		{"modern", "POST", call, standard("tools/call", "run_python"), 200, 0},
		{"with a session", "POST", call, append(standard("tools/call", "run_python"), session[0]), 200, 0},
		{"GET", "GET", "", standard("", ""), 405, -32000},
		{"DELETE", "DELETE", "", standard("", ""), 405, -32000},
		{"no header for the version", "POST", call, versioned("")[1:], 400, -32020},
		{"another version", "POST", call, versioned(latest), 400, -32020},
		{"no version in the body", "POST", run(3, "echo", ""), standard("tools/call", "run_python"), 400, -32602},
		{"another method", "POST", call, standard("tools/list", ""), 400, -32020},
		{"no method", "POST", call, standard("", "run_python"), 400, -32020},
		{"another name", "POST", call, standard("tools/call", "search_tools"), 400, -32020},
		{"no name", "POST", call, standard("tools/call", ""), 400, -32020},
		{"a name in Base64", "POST", call, standard("tools/call", "=?base64?cnVuX3B5dGhvbg==?="), 200, 0},
		{"to go on", "POST", call, append(standard("tools/call", "run_python"), "Last-Event-ID: 1-1"), 400, -32020},
		{"a version to come", "POST", strings.ReplaceAll(call, modern, "2027-01-01"), versioned("2027-01-01"),
			400, -32022},
		{"an unknown method", "POST", strings.ReplaceAll(call, "tools/call", "no/such"), standard("no/such", ""),
			404, -32601},
		{"an unknown tool", "POST", strings.ReplaceAll(call, "run_python", "no"), standard("tools/call", "no"),
			400, -32602},
		{"listening without _meta", "POST", `{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen"}`, nil,
			400, -32020},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := s.do(t.Context(), tc.method, tc.body, tc.headers...)
			got, code := all(t, r), 0
			if len(got) > 0 && got[0].Error != nil {
				code = got[0].Error.Code
			}
			if r.StatusCode != tc.status || code != tc.code {
				t.Errorf("%d %d, want %d %d: %+v", r.StatusCode, code, tc.status, tc.code, got)
			}
		})
	}
}

// TestInitializeFails: what isn't initialized is no session.
func TestInitializeFails(t *testing.T) {
	s := serve(t, echo, nil)
	for _, params := range []string{`[]`, `{"protocolVersion":5}`} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":%s}`, params)
		status, got, header := s.post(body)
		if header.Get("Mcp-Session-Id") != "" || len(got) != 1 || got[0].Error == nil {
			t.Errorf("%s: %d %+v %v", params, status, got, header)
		}
	}
}
