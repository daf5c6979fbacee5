package streamable_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestMain fails when a goroutine of the bridge is left.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leaked gives goroutines that a moment hasn't ended: the last ones of a test may still be on their
// way out.
func leaked() (left string) {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(
		20 * time.Millisecond) {
		buf := make([]byte, 1<<20)
		left = ""
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "mcp-bridge/bridge") && !strings.Contains(g, "TestMain") {
				left += g + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
	}
	return left
}

// runner runs what a test has for code.
type runner func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error)

func (f runner) Run(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error) {
	if r.Queued != nil {
		r.Queued()
	}
	return f(ctx, r, h)
}

// echo prints the code.
func echo(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result, error) {
	return printed(r.Code), nil
}

func printed(text string) sandbox.Result {
	return sandbox.Result{Status: sandbox.StatusOK, Output: []sandbox.Chunk{{Stream: "stdout", Text: text}}}
}

// upstreams has no servers.
type upstreams struct{ bridge.Upstreams }

func (upstreams) Update([]discovery.Server)                         {}
func (upstreams) Running(context.Context, string) bool              { return false }
func (upstreams) Pin(ctx context.Context) (context.Context, func()) { return ctx, func() {} }

// served is a bridge behind a handler.
type served struct {
	t      testing.TB
	bridge *bridge.Bridge
	h      *streamable.Handler
	url    string
	client *http.Client

	servers []discovery.Server
}

// serve serves what run does until the end of the test.
func serve(t testing.TB, run runner, change func(*streamable.Config)) *served {
	t.Helper()
	v := serveBridge(t, run)
	cfg := streamable.Config{
		Clients: v.bridge.Clients(), Hosts: streamable.Loopback, Log: slog.New(slog.DiscardHandler), Metrics: true,
	}
	if change != nil {
		change(&cfg)
	}
	h := streamable.New(cfg)
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		h.Close()
		s.CloseClientConnections()
		s.Close()
	})
	s.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 1000
	v.h, v.url, v.client = h, s.URL+streamable.Path, s.Client()
	return v
}

// serveBridge returns a bridge that is behind nothing yet.
func serveBridge(t testing.TB, run runner) *served {
	t.Helper()
	b, err := bridge.New(bridge.Config{
		Runner: run, Upstreams: upstreams{}, Timeout: 30 * time.Second, MaxTimeout: 120 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &served{t: t, bridge: b}
}

// changeTools has clients told that the tools have changed.
func (s *served) changeTools() {
	s.servers = append(s.servers, discovery.Server{Name: fmt.Sprint("s", len(s.servers)), Command: "x"})
	s.bridge.Update(s.servers, nil)
}

// answer is an HTTP response, which is closed at the end of the test.
type answer struct {
	StatusCode int
	Header     http.Header
	Body       io.ReadCloser
}

// do sends a request with headers, each "Name: value". It may be called on any goroutine, as may
// post and initialize: an answer that doesn't come is an error of the test, and has no status.
func (s *served) do(ctx context.Context, method, body string, headers ...string) *answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	got, err := s.client.Do(r)
	if err != nil {
		s.t.Errorf("%s %.200s: %v", method, body, err)
		return &answer{Header: http.Header{}, Body: http.NoBody}
	}
	s.t.Cleanup(func() { got.Body.Close() })
	return &answer{got.StatusCode, got.Header, got.Body}
}

// post is do for a message, and returns all that comes.
func (s *served) post(body string, headers ...string) (status int, messages []message, header http.Header) {
	s.t.Helper()
	r := s.do(s.t.Context(), http.MethodPost, body, headers...)
	defer r.Body.Close()
	return r.StatusCode, all(s.t, r), r.Header
}

// message is what the bridge sends.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
	event string // its id
}

// text returns the text of a tool's result.
func (m message) text() string {
	var result struct{ Content []struct{ Text string } }
	if json.Unmarshal(m.Result, &result) != nil || len(result.Content) == 0 {
		return fmt.Sprintf("%s %v", m.Result, m.Error)
	}
	return result.Content[0].Text
}

// events reads the messages of a stream.
type events struct {
	t     testing.TB
	lines *bufio.Reader
	last  string // id
}

func eventsOf(t testing.TB, r *answer) *events {
	return &events{t: t, lines: bufio.NewReaderSize(r.Body, 1<<20)}
}

// next returns the next message, or false at the end.
func (e *events) next() (m message, ok bool) {
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			return m, false
		}
		line = strings.TrimSuffix(line, "\n")
		if id, is := strings.CutPrefix(line, "id: "); is {
			e.last = id
		}
		data, is := strings.CutPrefix(line, "data: ")
		if !is || data == "" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			e.t.Errorf("%v in %q", err, data)
			return m, false
		}
		m.event = e.last
		return m, true
	}
}

// all returns the messages of a response.
func all(t testing.TB, r *answer) (messages []message) {
	t.Helper()
	if strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		for e := eventsOf(t, r); ; {
			m, ok := e.next()
			if !ok {
				return messages
			}
			messages = append(messages, m)
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	var m message
	if len(body) == 0 || json.Unmarshal(body, &m) != nil {
		return nil
	}
	return []message{m}
}

// initialize begins a session of a version, and returns its headers.
func (s *served) initialize(version, capabilities string, headers ...string) []string {
	s.t.Helper()
	status, _, header := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{`+
		`"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, version, capabilities),
		headers...)
	id := header.Get("Mcp-Session-Id")
	if status != http.StatusOK || id == "" {
		s.t.Errorf("initialize: %d, session %q", status, id)
	}
	all := append([]string{"Mcp-Session-Id: " + id, "MCP-Protocol-Version: " + version}, headers...)
	if status, _, _ := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, all...); status != 202 {
		s.t.Errorf("initialized: %d", status)
	}
	return all
}

const latest, modern = "2025-11-25", "2026-07-28"

// run returns a call of run_python; meta may be empty.
func run(id any, code, meta string) string {
	if meta != "" {
		meta = `,"_meta":` + meta
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":"run_python",`+
		`"arguments":{"code":%q}%s}}`, id, code, meta)
}

// metaOf returns the _meta of a request of 2026-07-28, with more members, each before a comma.
func metaOf(more string) string {
	return `{` + more + `"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
}

// standard returns the headers of such a request.
func standard(method, name string) []string {
	headers := []string{"MCP-Protocol-Version: " + modern, "Mcp-Method: " + method}
	if name != "" {
		headers = append(headers, "Mcp-Name: "+name)
	}
	return headers
}

// TestCall: a call is answered in each version of the protocol.
func TestCall(t *testing.T) {
	s := serve(t, echo, nil)
	for _, version := range []string{"2025-03-26", "2025-06-18", latest} {
		session := s.initialize(version, `{}`)
		status, got, header := s.post(run(7, "a\u2028b", ""), session...)
		if status != 200 || len(got) != 1 || string(got[0].ID) != "7" ||
			!strings.Contains(got[0].text(), "a\u2028b") ||
			header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %+v", version, status, got)
		}
	}
	status, got, header := s.post(run(`"x"`, "b", metaOf("")), standard("tools/call", "run_python")...)
	if status != 200 || len(got) != 1 || string(got[0].ID) != `"x"` || !strings.Contains(got[0].text(), "b") ||
		header.Get("Mcp-Session-Id") != "" {
		t.Errorf("%s: %d %+v", modern, status, got)
	}
}
