package streamable_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
)

// TestFlat: sessions that have ended, clients that have gone and bodies that were refused leave no
// memory behind, and nothing that is counted.
func TestFlat(t *testing.T) {
	code := newHanging()
	s := serve(t, code.run, nil)
	use := func(n int) {
		for i := range 3 * n {
			s.come(i%3 == 0)
		}
		for range n {
			s.lose(code)
			s.tooLong(int64(len(spaces)))
		}
		for range max(1, n/100) { // which is read, up to the limit
			s.tooLong(-1)
		}
		s.nothingHeld()
	}
	use(50)
	before := heap()
	use(1000)
	grown := heap() - before
	t.Logf("%d KiB more are held than after the first 50", grown>>10)
	if grown > 4<<20 {
		t.Errorf("that is too much: %d bytes", grown)
	}
}

// heap returns how many bytes are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what had a finalizer
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// quick returns the status of a request that leaves nothing behind in the test, and the session
// that it has begun.
func (s *served) quick(method, body string, headers ...string) (status int, session string) {
	r, err := http.NewRequestWithContext(context.Background(), method, s.url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for _, header := range append(headers, "Content-Type: application/json") {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	got, err := s.client.Do(r)
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	defer got.Body.Close()
	_, _ = io.Copy(io.Discard, got.Body)
	return got.StatusCode, got.Header.Get("Mcp-Session-Id")
}

// tooLong sends a body beyond the limit, which says its length unless that is -1.
func (s *served) tooLong(length int64) {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(spaces))
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = length
	got := httptest.NewRecorder()
	if s.h.ServeHTTP(got, r); got.Code != http.StatusRequestEntityTooLarge {
		s.t.Errorf("a body that is too long: %d", got.Code)
	}
}

var spaces = strings.Repeat(" ", client.MaxMessage+1)

// come begins a session, which makes a call if calls, and ends it.
func (s *served) come(calls bool) {
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` +
		`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	status, id := s.quick(http.MethodPost, initialize)
	if status != http.StatusOK {
		s.t.Errorf("initialize: %d", status)
	}
	session := "Mcp-Session-Id: " + id
	if calls {
		if status, _ := s.quick(http.MethodPost, run(2, "echo", ""), session); status != http.StatusOK {
			s.t.Errorf("a call: %d", status)
		}
	}
	if status, _ := s.quick(http.MethodDelete, "", session); status != http.StatusNoContent {
		s.t.Errorf("DELETE: %d", status)
	}
}

// lose makes a call, and goes when it runs.
func (s *served) lose(code *hanging) {
	ctx, hangUp := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(
		ctx,
		http.MethodPost,
		s.url,
		strings.NewReader(run(1, "lost", metaOf(""))),
	)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, header := range standard("tools/call", "run_python") {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if got, err := s.client.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, got.Body)
			got.Body.Close()
		}
	}()
	<-code.began
	hangUp()
	<-gone
	<-code.over
}

// nothingHeld waits until no session, call or byte is held.
func (s *served) nothingHeld() {
	s.t.Helper()
	var text string
	for range 1_000_000 {
		got := httptest.NewRecorder()
		s.h.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil))
		text = got.Body.String()
		left := false
		for _, name := range []string{"sessions", "requests_in_progress", "streams", "held_bytes"} {
			left = left || !strings.Contains(text, fmt.Sprintf("\nmcp_bridge_http_%s 0\n", name))
		}
		if !left {
			return
		}
		runtime.Gosched()
	}
	s.t.Fatalf("something is left: %s", text)
}
