//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/runtime/seccomp"
)

// asked is an engine whose containers end at once and well. It remembers what it was asked.
type asked struct {
	waited chan struct{} // gets one for each wait, which starts wait for: they are asked for at the same time

	mu       sync.Mutex
	requests []string
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	what := r.Method + " " + last
	if strings.HasSuffix(r.URL.Path, "/containers/json") {
		what = "GET containers"
	} else if strings.Contains(r.URL.Path, "/images/") {
		what = r.Method + " images " + last
	} else if strings.Contains(r.URL.Path, "/containers/") {
		what = r.Method + " containers " + last
	}
	a.mu.Lock()
	a.requests = append(a.requests, what)
	a.mu.Unlock()
	reply := asPodman(w, "4.3.1")
	switch {
	case last == "_ping":
	case last == "info":
		answer := info(true, "v1")
		answer["host"].(map[string]any)["security"] = map[string]any{"rootless": true, "seccompEnabled": true}
		reply(200, answer)
	case what == "GET containers":
		reply(200, []any{})
	case last == "create":
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "/nonexistent/") {
			reply(500, map[string]any{"message": "stat /nonexistent/mcp-bridge: no such file or directory",
				"response": 500})
			return
		}
		reply(201, map[string]any{"Id": "c"})
	case last == "attach":
		if conn := attached(w); conn != nil {
			conn.Close()
		}
	case last == "start":
		<-a.waited
		w.WriteHeader(204)
	case last == "wait":
		a.waited <- struct{}{}
		reply(200, 0)
	case r.Method == http.MethodDelete:
		reply(200, []any{})
	case what == "GET images json" && !strings.Contains(r.URL.Path, "none"):
		reply(200, map[string]any{"Id": strings.Repeat("1", 64), "Architecture": "amd64"})
	case what == "GET containers json":
		reply(200, map[string]any{"Id": "c", "State": map[string]any{"StartedAt": "2026-01-01T00:00:00Z",
			"FinishedAt": "2026-01-01T00:00:01Z"}, "Config": map[string]any{}})
	default:
		reply(404, map[string]any{"message": "no such thing", "response": 404})
	}
}

// taken is what was asked since it was last called, in an order that doesn't depend on what is
// asked at the same time.
func (a *asked) taken() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.requests
	a.requests = nil
	slices.Sort(list)
	return list
}

// TestRequests: what the engine is asked to be found, as the program is configured by default, for
// its image, for what dead bridges have left, and for each run, and nothing else.
func TestRequests(t *testing.T) {
	a := &asked{waited: make(chan struct{}, 10)}
	profile, err := seccomp.Load(seccomp.Strict)
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{Endpoint: served(t, a), RuntimeDir: t.TempDir(),
		Hardening: runtime.Hardening{Seccomp: profile}})
	defer d.Close()
	expect := func(when string, want ...string) {
		t.Helper()
		slices.Sort(want)
		if diff := cmp.Diff(want, a.taken()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	look := func() {
		t.Helper()
		if _, err := d.Facts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	run := func(unneeded bool) {
		t.Helper()
		g := runtimetest.Target{Driver: d, Image: "i", Owner: runtime.Self()}
		std := runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
			ExitUnneeded: func() bool { return unneeded }}
		exit, err := d.Run(t.Context(), g.Spec("pass"), std)
		if err != nil || exit.Code != 0 && !unneeded {
			t.Errorf("got %+v, %v", exit, err)
		}
	}
	look()
	expect("found", "GET _ping", "GET info")
	look()
	expect("found again")
	if _, err := d.Orphans(t.Context(), runtime.Self()); err != nil {
		t.Fatal(err)
	}
	expect("what dead bridges have left", "GET containers", "GET containers") // labelled, and external
	if _, has, err := d.FindImage(t.Context(), "docker.io/library/python:3.12-slim"); err != nil || !has {
		t.Fatal(has, err)
	}
	expect("its image", "GET images json")
	if _, has, err := d.FindImage(t.Context(), "localhost/none"); err != nil || has {
		t.Fatal(has, err)
	}
	expect("an image that it hasn't got", "GET images json", "GET images json") // by both of its names
	ofRun := []string{"POST containers create", "POST containers attach", "POST containers wait",
		"POST containers start", "DELETE containers c"}
	for range 2 {
		run(true)
		expect("a run of which all is known", ofRun...)
		run(false)
		expect("a run", append(ofRun, "GET containers json")...)
	}
}

// TestAskingForTheEnd: an engine that doesn't come to a container's end is asked for it less and
// less often.
func TestAskingForTheEnd(t *testing.T) {
	h := &hanging{at: "wait", reached: make(chan struct{}), names: map[string]bool{}}
	var asked atomic.Int32
	d := New(Config{Endpoint: served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/attach"):
			if conn := attached(w); conn != nil {
				conn.Close()
			}
			return
		case strings.HasSuffix(r.URL.Path, "/json"):
			asked.Add(1)
		}
		h.ServeHTTP(w, r)
	}))})
	defer d.Close()
	// half of it for the question: 5 ms, 10 ms, ... 160 ms, and one that is cut short
	d.Times.Cleanup = time.Second
	g := runtimetest.Target{Driver: d, Image: "i", Owner: runtime.Self()}
	exit, err := d.Run(t.Context(), g.Spec("pass"),
		runtime.Stdio{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
	if n := asked.Load(); err == nil || n == 0 || n > 7 {
		t.Errorf("got %+v, %v; asked %d times in half a second", exit, err, n)
	}
}

// TestConnectionsAreReused: what was asked at the same time once needs no new connections the next
// time.
func TestConnectionsAreReused(t *testing.T) {
	const atOnce = 8
	type key struct{}
	var used sync.Map // the connections that have carried a question about an image
	arrived, together := make(chan struct{}), make(chan struct{})
	go func() {
		for {
			for range atOnce {
				select {
				case <-arrived:
				case <-t.Context().Done():
					return
				}
			}
			for range atOnce {
				together <- struct{}{}
			}
		}
	}()
	l, endpoint := listening(t)
	s := &http.Server{
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, key{},
				c)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			reply := asPodman(w, "4.3.1")
			switch {
			case strings.Contains(r.URL.Path, "/images/"):
				used.Store(r.Context().Value(key{}), true)
				arrived <- struct{}{}
				<-together // so that each needs a connection of its own
				reply(200, map[string]any{"Id": strings.Repeat("1", 64)})
			case strings.HasSuffix(r.URL.Path, "/info"):
				reply(200, info(true, "v1"))
			}
		}),
	}
	go s.Serve(l)
	defer s.Close()
	d := New(Config{Endpoint: endpoint})
	defer d.Close()
	if _, err := d.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() {
				if _, has, err := d.FindImage(t.Context(), "localhost/i"); err != nil || !has {
					t.Error(has, err)
				}
			})
		}
		all.Wait()
	}
	n := 0
	used.Range(func(any, any) bool { n++; return true })
	if n != atOnce {
		t.Errorf("%d requests at once, three times, took %d connections", atOnce, n)
	}
}
