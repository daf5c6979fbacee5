//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// underWay is a run of a program that waits for a line.
type underWay struct {
	in   *io.PipeWriter
	exit runtime.Exit
	err  error
	done chan struct{}
}

// begin starts a run, and returns once its program says that it is up. The program ends with code 7
// when it gets a line, and with 0 at the end of its input.
func begin(t *testing.T, d *Driver, s runtime.Spec) *underWay {
	t.Helper()
	stdin, in := io.Pipe()
	up := make(chan struct{}, 1)
	std := silent()
	std.Stdin = stdin
	std.Stdout = writer(func([]byte) {
		select {
		case up <- struct{}{}:
		default:
		}
	})
	r := &underWay{in: in, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.exit, r.err = d.Run(context.WithoutCancel(t.Context()), s, std)
	}()
	t.Cleanup(func() { in.Close(); <-r.done })
	select {
	case <-up:
	case <-r.done:
		t.Fatalf("the run has ended: %+v, %v", r.exit, r.err)
	}
	return r
}

const waitsForALine = "import sys; print('up', flush=True); sys.exit(7 if sys.stdin.readline() else 0)"

// eventually blocks until what is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not so in two minutes: %s", what)
		}
	}
}

func briefly(d *Driver) {
	d.times.renew, d.times.lease = 300*time.Millisecond, 6*time.Second
	d.Times = engine.Times{Cleanup: 3 * time.Second, Silence: 2 * time.Second, Retry: time.Second / 4}
}

// TestDroppedConnection: a bridge that has connected again still renews the lease of the pods that
// it had, and hears how their runs end.
func TestDroppedConnection(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	briefly(d)
	r := begin(t, d, f.target(d)(t).Spec(waitsForALine))
	c, _ := d.Current()
	d.Drop(c)
	if again, err := d.Connect(t.Context()); err != nil || again == c {
		t.Fatalf("it is not connected again: %v", err)
	}
	before, _ := f.count("update leases")
	dropped := time.Now()
	eventually(t, "the lease is renewed for twice as long as it lasts", func() bool {
		now, _ := f.count("update leases")
		return now > before+2*reapEvery && time.Since(dropped) > 2*d.times.lease
	})
	if _, pods := f.count(""); pods != 1 {
		t.Fatalf("there are %d pods: a bridge removed the one that it runs code in", pods)
	}
	if _, err := io.WriteString(r.in, "go on\n"); err != nil {
		t.Fatal(err)
	}
	if <-r.done; r.err != nil || r.exit.Code != 7 {
		t.Errorf("the run ended with %+v, %v; want code 7", r.exit, r.err)
	}
}

// TestLeaseWithoutRuns: a lease is renewed though the connection was dropped and nothing runs.
func TestLeaseWithoutRuns(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	briefly(d)
	if _, err := d.Run(t.Context(), f.target(d)(t).Spec("print(1)"), silent()); err != nil {
		t.Fatal(err)
	}
	c, _ := d.Current()
	d.Drop(c)
	before, _ := f.count("update leases")
	eventually(t, "the lease is renewed", func() bool {
		now, _ := f.count("update leases")
		return now > before+5
	})
}

// TestLostServer: a bridge whose API server can't be reached ends its runs and refuses others, and
// says so. When the server is back it runs code again, and nothing is left.
func TestLostServer(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	briefly(d)
	spec := f.target(d)(t).Spec
	r := begin(t, d, spec(waitsForALine))
	f.lose()
	var gone *runtime.UnavailableError
	if <-r.done; !errors.As(r.err, &gone) || !gone.Gone {
		t.Errorf("the run ended with %+v, %v; want that the cluster went away", r.exit, r.err)
	}
	if _, err := d.Run(t.Context(), spec("print(1)"), silent()); !errors.As(err, &gone) {
		t.Errorf("a run without an API server: %v", err)
	}
	eventually(t, "the lease is over", func() bool { return d.Lost() != nil })
	said(t, d.Lost(), "has not renewed this bridge's lease for", "kubectl cluster-info")
	f.recover()
	eventually(t, "the lease is renewed", func() bool { return d.Lost() == nil })
	if _, err := d.Run(t.Context(), spec("print(1)"), silent()); err != nil {
		t.Errorf("a run with the API server back: %v", err)
	}
	eventually(t, "nothing is left", func() bool { _, pods := f.count(""); return pods == 0 })
}

// TestLeaseRefused: where the API server is there and doesn't renew the lease, other bridges may
// remove the pods. So the streams are cut when it is over, warm pods' too, and no run begins.
func TestLeaseRefused(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	briefly(d)
	spec := f.target(d)(t).Spec
	r := begin(t, d, spec(waitsForALine))
	readOnly := &metav1.Status{
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: "read-only",
	}
	f.mu.Lock()
	f.refuse = func(verb, resource string) *metav1.Status {
		if resource == "leases" && verb != "list" {
			return readOnly
		}
		return nil
	}
	f.mu.Unlock()
	select {
	case <-r.done: // nothing was sent to it
	case <-time.After(time.Minute):
		t.Fatal("the run goes on, whose lease is over")
	}
	_, err := d.Run(t.Context(), spec("print(1)"), silent())
	said(t, err, "other bridges may remove its pods", "kubectl cluster-info")
	if !errors.As(err, new(*runtime.UnavailableError)) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v; want why", err)
	}
	f.mu.Lock()
	f.refuse = nil
	f.mu.Unlock()
	if _, err := d.Run(t.Context(), spec("print(1)"), silent()); err != nil {
		t.Errorf("a run with the lease renewed again: %v", err)
	}
}

// TestLostWhileWarm: a call for which a pod was warm is told that the cluster is away, and the next
// one that it is back.
func TestLostWhileWarm(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	briefly(d)
	s := warm(t, d, "registry.example/python:3")
	run := func() (sandbox.Result, error) {
		return s.Run(t.Context(), sandbox.Request{ID: "r", Code: "print(6 * 7)", Timeout: time.Minute}, nil)
	}
	if r, err := run(); err != nil || r.Stdout() != "42\n" {
		t.Fatalf("got %+v, %v", r, err)
	}
	f.lose()
	if r, err := run(); !errors.As(err, new(*runtime.UnavailableError)) {
		t.Errorf("without an API server: %+v, %v", r, err)
	}
	f.recover()
	eventually(t, "runs take place with the API server back", func() bool {
		r, err := run()
		return err == nil && r.Stdout() == "42\n"
	})
	s.Close()
	eventually(t, "nothing is left", func() bool { _, pods := f.count(""); return pods == 0 })
}

// TestLostNode: a pod whose node says nothing is taken from the API, in the end.
func TestLostNode(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	briefly(d)
	d.times.force = time.Second
	s := f.target(d)(t).Spec("print(1)")
	s.Image = "registry.example/" + lostNode
	if exit, err := d.Run(t.Context(), s, silent()); err == nil {
		t.Errorf("its pod is gone: %+v", exit)
	}
	eventually(t, "the pod is taken from the API", func() bool { _, pods := f.count(""); return pods == 0 })
}

// TestPing: a busy bridge's ping doesn't wait behind its other requests.
func TestPing(t *testing.T) {
	f := newFake(t)
	c, err := f.driver(t, Config{}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	queue := c.cli.CoreV1().RESTClient().GetRateLimiter()
	for range requestsAtOnce + 250 {
		go func() { _ = queue.Wait(t.Context()) }()
	}
	const patience = 2 * time.Second
	within := func(do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return do(ctx)
	}
	for within(queue.Wait) == nil { // until the queue is longer than that
	}
	if err := within(c.Ping); err != nil {
		t.Error(err)
	}
}

// TestWatchRefused: a bridge hears of its pods soon after the API server tells of them again,
// however often that has refused to.
func TestWatchRefused(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	d.times.start = 5 * time.Second
	var refused atomic.Int64
	f.mu.Lock()
	f.refuse = func(verb, resource string) *metav1.Status {
		if resource != "pods" || verb != "list" && verb != "watch" || refused.Add(1) > 8 {
			return nil
		}
		return &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	}
	f.mu.Unlock()
	if _, err := d.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it was refused eight times", func() bool { return refused.Load() >= 8 })
	if _, err := d.Run(t.Context(), f.target(d)(t).Spec("print(1)"), silent()); err != nil {
		t.Error(err)
	}
}

// TestNewToken: where the API server no longer knows the account, the kubeconfig is read again.
func TestNewToken(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	briefly(d)
	c, err := d.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.expired = true
	f.mu.Unlock()
	if _, err := d.Run(t.Context(), f.target(d)(t).Spec("print(1)"), silent()); err == nil {
		t.Error("a run with a token that has expired")
	}
	f.mu.Lock()
	f.expired = false
	f.mu.Unlock()
	eventually(t, "another connection is used", func() bool { // an attempt that is under way has the old token
		again, err := d.Connect(t.Context())
		return err == nil && again != c
	})
}

// TestReaches: a pod without the guest finds out whether the cluster's network keeps it from the
// API server, and is gone afterwards.
func TestReaches(t *testing.T) {
	f := newFake(t)
	d := f.driver(t, Config{})
	for _, tt := range []struct {
		service string
		want    bool
	}{{f.server.Listener.Addr().String(), true}, {"127.0.0.1:1", false}} {
		f.service = tt.service
		if got, err := d.Reaches(t.Context(), "registry.example/python:3"); err != nil || got != tt.want {
			t.Errorf("%s is reached: %v, %v", tt.service, got, err)
		}
		if _, pods := f.count(""); pods != 0 {
			t.Errorf("%d pods are left", pods)
		}
	}
	f.service = "none" // no port: the program breaks
	if _, err := d.Reaches(t.Context(), "registry.example/python:3"); err == nil {
		t.Error("a pod whose program broke has told something")
	}
}
