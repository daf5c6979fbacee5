//go:build kubernetes

package kubernetes

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// driver returns a driver of the fake, which a kubeconfig names.
func (f *fake) driver(t testing.TB, cfg Config) *Driver {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	cfg.Context = cmp.Or(cfg.Context, "here")
	// The path tells the fake whose a request is: over plain HTTP no token does.
	var clusters, contexts string
	for name := range strings.FieldsSeq("here b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 b10 b11 b12 b13 b14 b15 " +
		"b16 b17 b18 b19") {
		clusters += fmt.Sprintf("- {name: %s, cluster: {server: %q}}\n", name, f.server.URL+"/as/"+name)
		contexts += fmt.Sprintf("- {name: %s, context: {cluster: %s, user: u, namespace: %s}}\n", name, name,
			testNamespace)
	}
	text := "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: t}}]\nclusters:\n" + clusters +
		"contexts:\n" + contexts
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	d := New(cfg)
	t.Cleanup(func() { d.Close() })
	return d
}

func (f *fake) target(d *Driver) func(*testing.T) runtimetest.Target {
	owner := runtime.Self()
	return func(*testing.T) runtimetest.Target {
		return runtimetest.Target{Driver: d, Image: "registry.example/python:3", Owner: owner, Count: func() int {
			_, pods := f.count("")
			return pods
		}}
	}
}

// TestBehaviour: the driver keeps its contract over real streams, the gate included.
func TestBehaviour(t *testing.T) {
	f := newFake(t)
	runtimetest.Behaviour(t, f.target(f.driver(t, Config{})))
}

// TestSPDY: where something between refuses WebSockets, the older protocol keeps the same contract,
// but for the end of input, which it hasn't got.
func TestSPDY(t *testing.T) {
	f := newFake(t)
	f.plain = true
	d := f.driver(t, Config{})
	r := begin(t, d, f.target(d)(t).Spec(waitsForALine))
	if _, err := io.WriteString(r.in, "go on\n"); err != nil {
		t.Fatal(err)
	}
	if <-r.done; r.err != nil || r.exit.Code != 7 {
		t.Errorf("the run ended with %+v, %v; want code 7", r.exit, r.err)
	}
	if posts, _ := f.count("create pods/attach"); posts != 2 {
		t.Errorf("%d requests to attach, want a WebSocket's and one more", posts)
	}
}

// TestRequests: a run costs three requests, to make, attach and delete its pod. Its lease's renewal
// is shared, its life is watched, and watches are as many for one run as for a hundred.
func TestRequests(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	d.times.renew = time.Hour
	g := f.target(d)(t)
	run := func() {
		t.Helper()
		if _, err := d.Run(t.Context(), g.Spec("print(1)"), silent()); err != nil {
			t.Fatal(err)
		}
	}
	run()
	before := f.counts()
	for range 5 {
		run()
	}
	f.cost(t, before, map[string]int{"create pods": 5, "create pods/attach": 5, "delete pods": 5})
	for request, want := range map[string]int{"list pods": 1, "create leases": 1} {
		if got, _ := f.count(request); got != want {
			t.Errorf("%s: %d requests in all, want %d", request, got, want)
		}
	}
	if got, _ := f.count("watch pods"); got < 1 || got > 2 { // the first may be one that lists, which is refused
		t.Errorf("%d watches for one connection", got)
	}
}

// TestWarmRequests: a call that a warm pod answers costs the deletion of that pod, and what makes
// the next one ready.
func TestWarmRequests(t *testing.T) {
	f := newFake(t)
	var compiled atomic.Bool // which takes a pod of its own, once
	f.begin = func(p *corev1.Pod) *corev1.PodStatus {
		all := entrypoint.Compiler()
		if slices.Contains(p.Spec.Containers[0].Args, all[len(all)-1]) {
			compiled.Store(true)
		}
		return nil
	}
	d := f.driver(t, Config{})
	d.times.renew = time.Hour
	s := warm(t, d, "registry.example/python:3")
	runs := func(n int) {
		t.Helper()
		for range n {
			before, _ := f.count("delete pods")
			r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "print(6 * 7)", Timeout: time.Minute}, nil)
			if err != nil || r.Stdout() != "42\n" {
				t.Fatalf("got %+v, %v", r, err)
			}
			eventually(t, "its pod is gone and another one has its stream", func() bool {
				deleted, _ := f.count("delete pods")
				return deleted > before && f.oneAttached()
			})
		}
	}
	for n := 0; !compiled.Load(); n++ {
		if runs(1); n == 20 {
			t.Fatal("20 runs, and the guest was not compiled")
		}
	}
	for settled, n := 0, 0; settled < 3; n++ { // the pod that waited meanwhile is replaced once more
		made, _ := f.count("create pods")
		runs(1)
		if now, _ := f.count("create pods"); now == made+1 {
			settled++
		} else if settled = 0; n == 20 {
			t.Fatal("a run makes more pods than one")
		}
	}
	before := f.counts()
	runs(5)
	f.cost(t, before, map[string]int{"create pods": 5, "create pods/attach": 5, "delete pods": 5})
}

// warm returns a sandbox over a driver that keeps one pod warm.
func warm(t *testing.T, d runtime.Driver, image string) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.New(d, sandbox.Config{
		Images: []string{image}, User: "65534:65534", Owner: runtime.Self(),
		Limits:      runtime.Limits{Memory: 256 << 20, PIDs: 64, NoFile: 1024, Shm: 16 << 20},
		OutputLimit: 256 << 10, ArtifactLimit: 1 << 20, MaxCalls: 100, MaxRuns: 1, MaxContainers: 3, Queue: 8,
		QueueTimeout: time.Minute, StartTimeout: time.Minute, MaxTimeout: time.Minute, Standby: 1,
		StandbyIdle: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// oneAttached reports whether there is one pod, which has its stream and is not being deleted.
func (f *fake) oneAttached() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, p := range f.pods {
		g := f.guests[name]
		if g == nil || len(f.pods) != 1 || p.DeletionTimestamp != nil {
			return false
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.to[0] != nil
	}
	return false
}

// counts returns how many requests of each kind there were.
func (f *fake) counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.requests)
}

// cost compares the requests since before with those that were wanted, and no others.
func (f *fake) cost(t *testing.T, before, want map[string]int) {
	t.Helper()
	got := f.counts()
	for request, n := range before {
		if got[request] -= n; got[request] == 0 {
			delete(got, request)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the requests were %v, want %v", got, want)
	}
}

func silent() runtime.Stdio {
	return runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &strings.Builder{}, Stderr: &strings.Builder{}}
}
