//go:build unix

package upstream

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestHelperIsAskedOnceForAll: where the headers of many calls are refused at once, the program
// that prints them is run once.
func TestHelperIsAskedOnceForAll(t *testing.T) {
	const calls = 20
	f := newFar(t)
	dir := t.TempDir()
	token, runs := filepath.Join(dir, "token"), filepath.Join(dir, "runs")
	for file, text := range map[string]string{token: "old", runs: ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	good, refused, all := "Bearer old", 0, make(chan struct{})
	srv, _ := web(t, discovery.HTTP, "/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		right := r.Header.Get("Authorization") == good
		if r.Method == http.MethodPost && !right {
			if refused++; refused == calls {
				close(all)
			}
		}
		mu.Unlock()
		switch {
		case r.Method != http.MethodPost || right:
			f.ServeHTTP(w, r)
		default: // only once all have sent the old one
			select {
			case <-all:
			case <-f.stop:
			}
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	srv.HeadersHelper = `echo run >>` + runs + `; printf '{"Authorization":"Bearer %s"}' "$(cat ` + token + `)"`
	p := open(t, nil, srv)
	call(t, p, "plain", "")
	if err := os.WriteFile(token, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	good = "Bearer new"
	mu.Unlock()
	var group sync.WaitGroup
	for range calls {
		group.Go(func() {
			if _, err := p.Call(t.Context(), "fake", "plain", nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if text, err := os.ReadFile(runs); err != nil || string(text) != "run\nrun\n" {
		t.Errorf("it was run %d times, want 2 (%v)", strings.Count(string(text), "run"), err)
	}
}
