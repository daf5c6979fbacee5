//go:build unix

package upstream

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// far is a server over HTTP that misbehaves as its tools are called.
type far struct {
	t    *testing.T
	stop chan struct{} // ends what hangs

	mu       sync.Mutex
	session  string         // that it knows; empty: none, and it names none
	seen     map[string]int // by method, and by "tool NAME"
	headers  http.Header    // of the last POST
	messages []string       // all that came without being a request
	newer    bool           // it knows the newer protocol
	unended  http.Header    // of its answers to those, whose bodies it doesn't end; nil: it does
}

func newFar(t *testing.T) *far {
	f := &far{t: t, stop: make(chan struct{}), seen: map[string]int{}}
	t.Cleanup(func() { close(f.stop) })
	return f
}

// openFar returns a pool of such a server.
func openFar(t *testing.T) (*far, *Pool) {
	f := newFar(t)
	srv, _ := web(t, discovery.HTTP, "/", f)
	return f, open(t, nil, srv)
}

func (f *far) count(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[what]
}

func (f *far) set(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.session = session
}

func (f *far) heard(part string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Contains(strings.Join(f.messages, "\n"), part)
}

func (f *far) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if last := r.Header.Get("Last-Event-ID"); r.Method == http.MethodGet && strings.HasPrefix(last, "answer ") {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resumed\":true}}\n\n",
			strings.TrimPrefix(last, "answer "))
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var m request
	_ = json.Unmarshal(body, &m)
	f.mu.Lock()
	f.seen[m.Method]++
	if m.Params.Name != "" {
		f.seen["tool "+m.Params.Name]++
	}
	if len(m.ID) == 0 || m.Method == "" {
		f.messages = append(f.messages, string(body))
	}
	f.headers = r.Header.Clone()
	session := f.session
	f.mu.Unlock()
	switch {
	case session != "" && m.Method != "initialize" && r.Header.Get("Mcp-Session-Id") != session:
		w.WriteHeader(http.StatusNotFound)
	case m.Method == "initialize":
		if session != "" {
			w.Header().Set("Mcp-Session-Id", session)
		}
		f.json(w, m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"far",`+
			`"version":"1"}}`)
	case len(m.ID) == 0 || m.Method == "":
		maps.Copy(w.Header(), f.unended)
		w.WriteHeader(http.StatusAccepted)
		if f.unended != nil {
			_ = http.NewResponseController(w).Flush()
			f.hang(r)
		}
	case m.Method == "server/discover" && !f.newer:
		w.WriteHeader(http.StatusBadRequest)
	case m.Method == "server/discover":
		f.json(w, m, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete",`+
			`"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"far",`+
			`"version":"1"}}}`)
	case m.Method == "tools/list":
		bad := ""
		if f.newer {
			bad = `{"name":"bad header","inputSchema":{"type":"object","properties":{"a":{"type":"string",` +
				`"x-mcp-header":"Bad Header"}}}},`
		}
		f.json(w, m, `{"tools":[{"name":"a","inputSchema":{"n":9007199254740993}},`+bad+`{"name":"plain",`+
			`"inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`)
	default:
		f.tool(w, r, m)
	}
}

func (f *far) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-f.stop:
	}
}

func (f *far) json(w http.ResponseWriter, m request, result string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// flood writes until the client has gone.
func flood(w http.ResponseWriter) {
	for junk := strings.Repeat("x", 1<<16); ; {
		if _, err := io.WriteString(w, junk); err != nil {
			return
		}
	}
}

func (f *far) tool(w http.ResponseWriter, r *http.Request, m request) {
	events := func(format string, args ...any) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, format, args...)
		_ = http.NewResponseController(w).Flush()
	}
	answer := func(result string) string {
		return fmt.Sprintf("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":%s}\n\n", m.ID,
			result)
	}
	switch m.Params.Name {
	case "plain":
		f.json(w, m, `{"n":9007199254740993,  "f":1.0}`)
	case "events":
		events(": comment\r\nid: 1\r\nretry: 1\r\ndata:\r\n\r\n%s", answer(`{"n":9007199254740993}`))
	case "lines":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, "{\n\"jsonrpc\":\"2.0\",\r\n\"id\":%s,\r\"result\":{\n\"n\":1}}", m.ID)
	case "batch":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, "[\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},\n%s\n]",
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
	case "twice":
		events("%s%s", answer(`{"n":1}`), answer(`{"n":2}`))
	case "progress":
		var meta struct {
			Token json.RawMessage `json:"progressToken"`
		}
		_ = json.Unmarshal(m.Params.Meta, &meta)
		events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"+
			"{\"progressToken\":%s,\"progress\":1}}\n\n%s", meta.Token, answer(`{}`))
	case "ping":
		events("data: {\"jsonrpc\":\"2.0\",\"id\":\"p-1\",\"method\":\"ping\"}\n\n%s", answer(`{}`))
	case "error":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32050,"message":"bad s3cr3t-value",`+
				`"data":{"n":9007199254740993}}}`)
	case "cut":
		events("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"resu", m.ID)
		panic(http.ErrAbortHandler)
	case "resumed":
		events("id: answer %s\nretry: 1\ndata:\n\n", m.ID)
	case "not resumed":
		events("id: 1\nretry: 1\ndata:\n\n")
	case "ended":
		events(": nothing\n\n")
	case "huge":
		w.Header().Set("Content-Type", "application/json")
		flood(w)
	case "huge event":
		events("data: ")
		flood(w)
	case "huge failure":
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusInternalServerError)
		flood(w)
	case "failure":
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "\x1b[31mno upstream\x1b[0m for\ns3cr3t-value")
	case "html":
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<p>log in</p>")
	case "nothing":
		w.WriteHeader(http.StatusAccepted)
	case "other id":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"b-999","result":{}}`)
	case "no json":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":`)
	case "hang":
		f.hang(r)
	case "scope":
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="files:write", realm="x"`)
		w.WriteHeader(http.StatusForbidden)
	case "forbidden":
		w.WriteHeader(http.StatusForbidden)
	case "unauthorized":
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// secretive is srv with a secret that the server knows too.
func secretive(srv discovery.Server) discovery.Server {
	srv.Headers = map[string]string{"X-Api-Key": "s3cr3t-value"}
	return srv
}
