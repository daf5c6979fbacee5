//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// hanging is an engine that stops answering at one point of a run. What it has created and removed
// it remembers.
type hanging struct {
	at string // the last part of the path that it doesn't answer

	mu      sync.Mutex
	reached chan struct{} // closed when a request is left unanswered
	names   map[string]bool
}

func (h *hanging) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if last == h.at {
		h.mu.Lock()
		select {
		case <-h.reached:
		default:
			close(h.reached)
		}
		h.mu.Unlock()
		<-r.Context().Done() // the client's
		return
	}
	reply := asPodman(w, "4.3.1")
	switch {
	case last == "_ping":
	case last == "info":
		reply(200, info(true, "v1"))
	case last == "create":
		var spec struct{ Name string }
		if err := json.NewDecoder(r.Body).Decode(&spec); err != nil || spec.Name == "" {
			reply(500, map[string]any{"message": "no name", "response": 500})
			return
		}
		h.mu.Lock()
		h.names[spec.Name] = true
		h.mu.Unlock()
		reply(201, map[string]any{"Id": spec.Name})
	case last == "attach":
		conn := attached(w)
		if conn == nil {
			return
		}
		if h.at != "json" { // which is asked for once the streams have ended; else they never end by themselves
			_, _ = io.Copy(io.Discard, conn)
		}
		conn.Close()
	case last == "start", last == "kill":
		w.WriteHeader(204)
	case r.Method == http.MethodDelete:
		h.mu.Lock()
		delete(h.names, last)
		h.mu.Unlock()
		reply(200, []any{})
	case last == "json":
		reply(200, map[string]any{"Id": "x", "State": map[string]any{"Running": true}, "Config": map[string]any{}})
	default:
		<-r.Context().Done()
	}
}

// TestEngineThatDoesNotAnswer: whatever the engine leaves unanswered, a run that is cancelled ends,
// and what was created is removed.
func TestEngineThatDoesNotAnswer(t *testing.T) {
	needTime(t)
	for _, at := range []string{"create", "attach", "start", "wait", "json"} {
		t.Run(at, func(t *testing.T) {
			h := &hanging{at: at, reached: make(chan struct{}), names: map[string]bool{}}
			d := New(Config{Endpoint: served(t, h)})
			d.Times.Cleanup = 2 * time.Second // the bindings try three times, 0.6 s in all
			defer d.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-h.reached
				cancel()
			}()
			g := runtimetest.Target{Driver: d, Image: "i", Owner: runtime.Self()}
			stdin, w := io.Pipe()
			defer w.Close()
			exit, err := d.Run(ctx, g.Spec("pass"),
				runtime.Stdio{Stdin: stdin, Stdout: io.Discard, Stderr: io.Discard})
			if err == nil {
				t.Errorf("got %+v and no error", exit)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if len(h.names) > 0 {
				t.Errorf("left: %v", h.names)
			}
		})
	}
}
