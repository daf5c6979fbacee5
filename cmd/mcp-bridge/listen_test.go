package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// visitor is a client of a bridge that listens.
type visitor struct {
	t       *testing.T
	url     string
	session string
	process *os.Process
	ended   chan error
}

// visit starts a bridge that listens, and begins a session.
func visit(t *testing.T, servers map[string]entry, args ...string) *visitor {
	t.Helper()
	cmd := command(t, servers, append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	v := &visitor{t: t, process: cmd.Process, ended: make(chan error, 1)}
	lines := bufio.NewScanner(stderr)
	var said strings.Builder
	for v.url == "" && lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		_, said, _ := strings.Cut(lines.Text(), "msg=listening url=")
		v.url, _, _ = strings.Cut(said, " ")
	}
	go func() {
		for lines.Scan() {
		}
		v.ended <- cmd.Wait()
	}()
	t.Cleanup(v.end)
	if v.url == "" {
		t.Fatalf("it doesn't listen:\n%s", said.String())
	}
	v.begin()
	return v
}

// begin begins a session.
func (v *visitor) begin() {
	v.session = ""
	_, header := v.post("initialize", map[string]any{"protocolVersion": "2025-11-25",
		"capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "0"}})
	v.session = header.Get("Mcp-Session-Id")
}

// end has the bridge end, and waits for it.
func (v *visitor) end() {
	if v.process == nil {
		return
	}
	_ = v.process.Signal(syscall.SIGTERM)
	v.process = nil
	if err := <-v.ended; err != nil {
		v.t.Errorf("the bridge ended with %v", err)
	}
}

// post sends a request, and returns the answer; nothing, and the test fails, where there isn't one.
// It may be called on any goroutine.
func (v *visitor) post(method string, params any) (answer message, header http.Header) {
	answer, header, err := v.try(method, params)
	if err != nil {
		v.t.Errorf("%s: %v", method, err)
	}
	return answer, header
}

func (v *visitor) try(method string, params any) (answer message, header http.Header, err error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return answer, nil, err
	}
	response, err := http.DefaultClient.Do(v.request(http.MethodPost, string(body)))
	if err != nil {
		return answer, nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimPrefix(line, "data: ")
		if err == nil && strings.HasPrefix(line, "{") {
			err = json.Unmarshal([]byte(line), &answer)
		}
	}
	return answer, response.Header, err
}

// get returns what is at a path.
func (v *visitor) get(path string) string {
	r, err := http.Get(strings.TrimSuffix(v.url, "/mcp") + path)
	must(v.t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	must(v.t, err)
	return string(body)
}

// python runs code and returns the result.
func (v *visitor) python(code string) string {
	answer, _ := v.post("tools/call",
		map[string]any{"name": "run_python", "arguments": map[string]any{"code": code}})
	return string(answer.Result)
}

// TestListen: what is shown to a host over stdio is shown over HTTP. Only what MCP_BRIDGE_CONFIG
// lists is used of the user's servers.
func TestListen(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home+"/.config")
	must(t, os.MkdirAll(home+"/.cursor", 0o700))
	cursors := []byte(`{"mcpServers":{"of-cursor":{"command":"true"}}}`)
	must(t, os.WriteFile(home+"/.cursor/mcp.json", cursors, 0o600))
	v := visit(t, map[string]entry{"listed": shop(t)}, "--metrics")
	answer, _ := v.post("tools/list", map[string]any{})
	tools := string(answer.Result)
	if !strings.Contains(tools, "listed") || strings.Contains(tools, "of-cursor") {
		t.Errorf("got %s", tools)
	}
	for path, want := range map[string]string{"/healthz": "ok", "/metrics": "mcp_bridge_http_sessions 1\n"} {
		if got := v.get(path); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	v.end()
}

// TestListenOnEngine: code runs for a client over HTTP, and a bridge that is told to end finishes
// it first.
func TestListenOnEngine(t *testing.T) {
	anyEngine(t)
	v := visit(t, map[string]entry{"shop": shop(t)}, "--metrics")
	if got := v.python("print(mcp_shop.add(a=40, b=2)['sum'])"); !strings.Contains(got, `"42`) {
		t.Fatalf("got %s", got)
	}
	within(t, "the first call is over", v.running(0)) // not at once when its answer has come
	began := make(chan string, 1)
	go func() { began <- v.python("import time; time.sleep(3); print('to the end')") }()
	within(t, "it runs", v.running(1))
	v.end()
	if got := <-began; !strings.Contains(got, "to the end") {
		t.Errorf("got %s", got)
	}
}

// TestDeleteOnEngine: of a session that its client ends nothing is left within a second, whatever
// its code does. A busy machine may take longer: only with MCP_BRIDGE_TEST_LONG=1 that is judged.
func TestDeleteOnEngine(t *testing.T) {
	anyEngine(t)
	t.Setenv("MCP_BRIDGE_STATE", "session")
	t.Setenv("MCP_BRIDGE_STANDBY", "0")
	v := visit(t, nil, "--metrics")
	var took []time.Duration
	for _, code := range []string{
		"while True: pass",
		"import signal\nfor s in range(1, 32):\n  try: signal.signal(s, signal.SIG_IGN)\n" +
			"  except (OSError, ValueError): pass\nwhile True: pass",
		"", // between calls
	} {
		for range 3 {
			took = append(took, v.endWith(code))
		}
	}
	slices.Sort(took)
	t.Logf("seen gone after %v", took)
	most := 5 * time.Second
	if os.Getenv("MCP_BRIDGE_TEST_LONG") != "" {
		most = time.Second
	}
	if took[len(took)/2] > most {
		t.Errorf("most are gone only after more than %v: %v", most, took)
	}
}

// endWith ends a session in which code runs, if there is some, and returns how long its container
// was seen after that.
func (v *visitor) endWith(code string) time.Duration {
	t := v.t
	v.begin()
	v.python("n = 1")
	within(t, "that is over", v.running(0))
	answered := make(chan struct{})
	if code == "" {
		close(answered)
	} else {
		go func() { defer close(answered); v.hang(2, code) }()
		within(t, "it runs", v.running(1))
	}
	if len(containersOf(t, []int{v.process.Pid})) == 0 { // the first one's may be leaving still
		t.Error("the session has no sandbox")
	}
	status, ended := v.delete(), time.Now()
	if status != http.StatusNoContent {
		t.Errorf("DELETE: %d", status)
	}
	within(t, "its container is gone", func() bool { return len(containersOf(t, []int{v.process.Pid})) == 0 })
	took := time.Since(ended).Round(time.Millisecond)
	<-answered
	return took
}

// running returns whether n requests are worked on. The bridge must have --metrics.
func (v *visitor) running(n int) func() bool {
	return func() bool {
		return strings.Contains(v.get("/metrics"), fmt.Sprintf("mcp_bridge_http_requests_in_progress %d\n", n))
	}
}

// hang sends a run that gets no answer.
func (v *visitor) hang(id int, code string) {
	body, err := json.Marshal(code)
	if err != nil {
		v.t.Error(err)
		return
	}
	r := v.request(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{`+
		`"name":"run_python","arguments":{"timeout":60,"code":%s}}}`, id, body))
	if response, err := http.DefaultClient.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
}

// delete ends the session, and returns the status.
func (v *visitor) delete() int {
	response, err := http.DefaultClient.Do(v.request(http.MethodDelete, ""))
	must(v.t, err)
	response.Body.Close()
	return response.StatusCode
}

// request returns one of the session.
func (v *visitor) request(method, body string) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), method, v.url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if v.session != "" {
		r.Header.Set("Mcp-Session-Id", v.session)
	}
	return r
}

// TestListenKilled: of a bridge that is killed under load nothing is left, and the next one tells
// its clients to begin another session.
func TestListenKilled(t *testing.T) {
	anyEngine(t)
	v := visit(t, nil, "--metrics")
	for id := range 2 {
		go v.hang(id, "while True: pass")
	}
	bridge := v.process
	within(t, "both run", func() bool {
		return strings.Contains(v.get("/metrics"), "mcp_bridge_http_requests_in_progress 2\n") &&
			len(containersOf(t, []int{bridge.Pid})) >= 2
	})
	must(t, bridge.Kill())
	v.process = nil
	<-v.ended
	withinTime(t, 30*time.Second, "no container is left", func() bool {
		return len(containersOf(t, []int{bridge.Pid})) == 0
	})
	next := visit(t, nil)
	next.session = v.session
	if answer, _ := next.post("tools/list", map[string]any{}); answer.Error == nil ||
		!strings.Contains(answer.Error.Message, "initialize") {
		t.Errorf("an old session is answered with %+v", answer)
	}
}
