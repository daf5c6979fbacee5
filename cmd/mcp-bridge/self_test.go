package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestBridgeBehindAnotherName: a bridge that nothing in its configuration gives away, a copy under
// another name, is known when it answers, and isn't used.
func TestBridgeBehindAnotherName(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "weather-server")
	if err := os.Link(self(t), copied); err != nil {
		copyFile(t, self(t), copied)
	}
	cmd := command(t, map[string]entry{"weather": {Command: copied, Env: map[string]string{asMain: "1"}}},
		"tools", "weather")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "it is mcp-bridge itself") ||
		!strings.Contains(string(out), "servers.json") {
		t.Errorf("got %v:\n%s", err, out)
	}
}

// proxy answers over HTTP with what a bridge answers on its standard input, as programs do that put
// a stdio server behind a URL.
type proxy struct {
	bridge *client       // to be read once ready is closed
	ready  chan struct{} // closed when there is a bridge
	asked  atomic.Int64  // handshakes
	t      *testing.T
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	select { // the bridge may look for its servers before its client has it
	case <-p.ready:
	case <-r.Context().Done():
		return
	}
	c := p.bridge
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if m.Params == nil {
		m.Params = json.RawMessage("{}")
	}
	if m.ID == nil {
		c.send(map[string]any{"jsonrpc": "2.0", "method": m.Method, "params": m.Params})
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.Method == "initialize" || m.Method == "server/discover" {
		p.asked.Add(1)
	}
	got := c.request(m.Method, m.Params)
	answer := map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": got.Result}
	if got.Error != nil {
		answer = map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": got.Error}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		p.t.Error(err)
	}
}

// TestBridgeBehindURL: the bridge has no address of its own that its configuration could name, but
// a program that puts it behind one is no way around: the bridge knows its own answer to the
// handshake, and calls nothing there.
func TestBridgeBehindURL(t *testing.T) {
	p := &proxy{ready: make(chan struct{}), t: t}
	web := httptest.NewServer(p)
	t.Cleanup(web.Close)
	c := serve(t, command(t, map[string]entry{"loop": {Type: "http", URL: web.URL + "/mcp"}}))
	p.bridge = c
	close(p.ready)
	got := c.search(map[string]any{"query": "run python code", "server": "loop"})
	if !strings.Contains(got, "it is mcp-bridge itself") || !strings.Contains(got, "servers.json") ||
		strings.Contains(got, "mcp_loop.run_python") {
		t.Errorf("got %s", got)
	}
	if n := p.asked.Load(); n == 0 || n > 2 {
		t.Errorf("it asked itself %d times", n)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	must(t, err)
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	must(t, err)
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	must(t, out.Close())
}
